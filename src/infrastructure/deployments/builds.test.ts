import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { openVirtualFleet, type VirtualFleet } from "../../../test/harness/virtual-fleet.ts";
import type { Subscriber } from "../../kernel/redis/index.ts";
import { SandboxBuilder } from "../../sandbox/builder.ts";
import { currentFolder, installedSha } from "./artefact.ts";
import { startBuildUpdater } from "./build-updater.ts";
import { beginBuild, type Commit, findBuild } from "./builds.ts";
import { invariants } from "./invariants.ts";
import { keys } from "./keys.ts";
import { openBuildUnit } from "./opening.ts";
import type { Updater } from "./plain-updater.ts";
import { requestUpdate } from "./service.ts";
import type { DeploymentTables } from "./tables.ts";
import { announceReady } from "./turn.ts";

const REPO = "frontend-web";
const RESTART = 10;
const OLD: Commit = { sha: "aaaaaaa1", committedAt: 1_700_000_000 };
const NEW: Commit = { sha: "bbbbbbb2", committedAt: 1_700_001_000 };
const commits = new Map([OLD, NEW].map((commit) => [commit.sha, commit]));
const source = { head: async () => NEW, find: async (sha: string) => commits.get(sha) };

let fleet: VirtualFleet;
let builder: SandboxBuilder;
const lives: { stop(): Promise<void> }[] = [];

beforeAll(async () => {
  fleet = await openVirtualFleet();
});
afterAll(() => fleet.close());
beforeEach(async () => {
  await fleet.reset();
  builder = new SandboxBuilder(fleet.world.clock, { duration: 30 });
});
afterEach(() => Promise.all(lives.splice(0).map((life) => life.stop())));

type Hearing = (channel: string) => boolean;

/** A subscriber that only hears some channels: messages on the others are lost. */
function hardOfHearing(subscriber: Subscriber, hears: Hearing): Subscriber {
  const subscribe: Subscriber["subscribe"] = async (channel, handler) =>
    hears(channel) ? subscriber.subscribe(channel, handler) : async () => {};
  return { subscribe } as unknown as Subscriber;
}

async function instance(options: { hears?: Hearing; withoutBuilder?: boolean; bundled?: Commit } = {}) {
  const { ctx: plain, directory } = fleet.machine();
  const ctx = options.hears
    ? Object.defineProperty(plain, "subscriber", { value: hardOfHearing(plain.subscriber, options.hears) })
    : plain;
  const unit = { repo: REPO, directory };
  const state = {
    ctx,
    directory,
    up: false,
    serves: "",
    generation: 0,
    updater: undefined as Updater | undefined,
    dead: false,
    /** As a crash would: nothing is released, nothing said. */
    async stop() {
      state.dead = true;
      await state.updater?.close();
    },
  };
  lives.push(state);
  const bundled = options.bundled ?? OLD;
  const live = async () => {
    if (state.dead) return;
    const opened = await openBuildUnit(ctx, unit, { bundled, canBuild: !options.withoutBuilder });
    state.serves = opened.sha;
    state.updater = await startBuildUpdater(ctx, {
      ...unit,
      source,
      builder: options.withoutBuilder ? undefined : builder,
      sha: opened.sha,
      launch: opened.launch ? bundled : undefined,
      shutdown: async () => {
        state.up = false;
      },
      exit: ({ restart }) => void (restart && restartLater()),
    });
    state.up = true;
    state.generation += 1;
    await announceReady(ctx, unit, opened.sha);
  };
  const restartLater = async () => {
    await state.updater?.close();
    await ctx.clock.sleep(RESTART);
    await live();
  };
  await live();
  return state;
}

const hash = () => fleet.world.redis.commands.get(keys.buildHash({ repo: REPO }));
const lock = () => fleet.world.redis.commands.get(keys.lock({ repo: REPO }));
const broken = async () => (await Promise.all(invariants.map((invariant) => invariant.check(fleet.world)))).flat();

/** Two instances that serve the old commit, which is built and current. */
async function twoInstances(options: { hears?: Hearing } = {}) {
  const instances = await Promise.all([instance(options), instance(options)]);
  await fleet.pass(60);
  expect(builder.started).toEqual([OLD.sha]);
  expect(await hash()).toBe(OLD.sha);
  expect(await lock()).toBeNull();
  return instances;
}

describe("an update of a unit that is built", () => {
  it("builds once, changes the current build once and reaches both instances, one after the other", async () => {
    const instances = await twoInstances();
    const hashes = new Set<string | null>();
    let mostDown = 0;
    await requestUpdate(instances[0]!.ctx, { repo: REPO, sha: NEW.sha });
    await fleet.pass(90, async () => {
      hashes.add(await hash());
      mostDown = Math.max(mostDown, instances.filter(({ up }) => !up).length);
      expect(await broken()).toEqual([]);
    });
    expect(builder.started).toEqual([OLD.sha, NEW.sha]);
    expect([...hashes]).toEqual([OLD.sha, NEW.sha]);
    expect(mostDown).toBe(1);
    for (const { serves, up, directory } of instances) {
      expect({ serves, up }).toEqual({ serves: NEW.sha, up: true });
      expect(readFileSync(join(currentFolder({ repo: REPO, directory }), "sha.txt"), "utf8")).toBe(NEW.sha);
    }
    expect(await lock()).toBeNull();
    expect(instances.flatMap(({ ctx }) => ctx.alerts.recorded.filter(({ level }) => level !== "ops"))).toEqual([]);
  });

  it("reaches both instances within 300 s when do_update is lost", async () => {
    const instances = await twoInstances({ hears: (channel) => !channel.endsWith(":do_update") });
    await requestUpdate(instances[0]!.ctx, { repo: REPO, sha: NEW.sha });
    await fleet.pass(100);
    await fleet.wait(200);
    expect(instances.map(({ serves }) => serves)).toEqual([NEW.sha, NEW.sha]);
    expect(builder.started).toEqual([OLD.sha, NEW.sha]);
  });

  it("reaches an instance that hears nothing at all by the comparison every 300 s", async () => {
    const [hearing] = await twoInstances();
    const deaf = await instance({ hears: () => false });
    await requestUpdate(hearing!.ctx, { repo: REPO, sha: NEW.sha });
    await fleet.pass(60);
    expect(await hash()).toBe(NEW.sha);
    expect(deaf.serves).toBe(OLD.sha);
    await fleet.wait(220);
    await fleet.pass(50);
    expect(deaf.serves).toBe(NEW.sha);
  });

  it("is finished by the launcher's own look when build_ready is lost", async () => {
    const instances = await twoInstances({ hears: (channel) => !channel.endsWith(":build_ready") });
    await requestUpdate(instances[0]!.ctx, { repo: REPO });
    await fleet.pass(90);
    expect(instances.map(({ serves }) => serves)).toEqual([NEW.sha, NEW.sha]);
  });
});

describe("a build that goes wrong", () => {
  it("fails with an urgent alert, frees the lock and leaves the old build in use", async () => {
    const instances = await twoInstances();
    builder.faults.failure = "the compiler is unhappy";
    await requestUpdate(instances[0]!.ctx, { repo: REPO, sha: NEW.sha });
    await fleet.pass(60);
    expect(await findBuild(fleet.world, REPO, NEW.sha)).toMatchObject({
      state: "failed",
      error: "the compiler is unhappy",
    });
    expect(builder.started).toEqual([OLD.sha, NEW.sha]);
    expect(await hash()).toBe(OLD.sha);
    expect(await lock()).toBeNull();
    expect(instances.map(({ serves, up }) => ({ serves, up }))).toEqual(
      instances.map(() => ({ serves: OLD.sha, up: true })),
    );
    const urgent = instances.flatMap(({ ctx }) => ctx.alerts.recorded.filter(({ level }) => level === "urgent"));
    expect(urgent.map(({ identifier }) => identifier)).toEqual(["builds:failed"]);

    delete builder.faults.failure;
    await requestUpdate(instances[0]!.ctx, { repo: REPO, sha: NEW.sha });
    await fleet.pass(90);
    expect(instances.map(({ serves }) => serves)).toEqual([NEW.sha, NEW.sha]);
  });

  it("is ended after 1800 s, while its lock was renewed all the time", async () => {
    const only = await instance();
    await fleet.pass(45);
    builder.faults.neverFinishes = true;
    await requestUpdate(only.ctx, { repo: REPO, sha: NEW.sha });
    await fleet.pass(10);
    for (let minute = 0; minute < 29; minute++) {
      await fleet.wait(60);
      expect(await lock()).not.toBeNull();
    }
    expect(builder.ended).toBe(0);
    await fleet.wait(70);
    expect(builder.ended).toBe(1);
    expect((await findBuild(fleet.world, REPO, NEW.sha))?.error).toMatch(/^build_timeout/);
    expect(await lock()).toBeNull();
    expect(only.ctx.alerts.identifiers()).toContain("builds:failed");
  });

  it("is refused by every instance when its checksum differs, and the lock is free again", async () => {
    const instances = await twoInstances();
    builder.faults.wrongSha256 = true;
    await requestUpdate(instances[0]!.ctx, { repo: REPO, sha: NEW.sha });
    await fleet.pass(60);
    await fleet.wait(340);
    expect(instances.map(({ serves, up, generation }) => ({ serves, up, generation }))).toEqual(
      instances.map(() => ({ serves: OLD.sha, up: true, generation: 1 })),
    );
    expect(instances.map(({ directory }) => installedSha({ repo: REPO, directory }))).toEqual([undefined, undefined]);
    expect(await lock()).toBeNull();
    const urgent = instances.flatMap(({ ctx }) => ctx.alerts.recorded.filter(({ level }) => level === "urgent"));
    expect(urgent.map(({ identifier }) => identifier)).toEqual([
      "builds:artefact_mismatch",
      "builds:artefact_mismatch",
    ]);
  });

  it("is launched again by another instance when its launcher died", async () => {
    await twoInstances();
    // A launcher that wrote its row, holds the lock, and is gone.
    const dead = fleet.machine();
    await dead.ctx.redis.commands.set(keys.lock({ repo: REPO }), "d".repeat(22), "EX", 300);
    await beginBuild(dead.ctx, REPO, NEW);
    await requestUpdate(dead.ctx, { repo: REPO, sha: NEW.sha });
    await fleet.wait(200);
    expect(builder.started).toEqual([OLD.sha]);
    await fleet.wait(120);
    expect(builder.started).toEqual([OLD.sha, NEW.sha]);
    await fleet.pass(80);
    expect(await hash()).toBe(NEW.sha);
  });
});

describe("an instance that opens", () => {
  it("takes over a newer build that is stored before it serves", async () => {
    const first = await instance({ bundled: NEW });
    await fleet.pass(45);
    const second = await instance();
    expect([first.serves, second.serves]).toEqual([NEW.sha, NEW.sha]);
    expect(await hash()).toBe(NEW.sha);
    expect(builder.started).toEqual([NEW.sha]);
  });

  it("has its own commit built when it is the first to bring it, and others then take it over", async () => {
    const old = await instance();
    await fleet.pass(45);
    await instance({ bundled: NEW });
    await fleet.pass(120);
    expect(builder.started).toEqual([OLD.sha, NEW.sha]);
    expect(old.serves).toBe(NEW.sha);
    expect(await broken()).toEqual([]);
  });

  it("serves what came with its code where no builder is configured", async () => {
    const one = await instance({ withoutBuilder: true });
    expect(one.serves).toBe(OLD.sha);
    expect(await hash()).toBe(OLD.sha);
    expect(await findBuild(fleet.world, REPO, OLD.sha)).toMatchObject({ state: "ready", artefact: undefined });
    expect(await broken()).toEqual([]);
    await requestUpdate(one.ctx, { repo: REPO, sha: NEW.sha });
    await fleet.pass(20);
    expect(one.generation).toBe(2);
    expect(await lock()).toBeNull();
  });
});

describe("stored builds", () => {
  it("are kept five per unit, older ones are handed to the sweep", async () => {
    builder.faults.duration = 1;
    const { ctx } = await instance();
    await fleet.pass(10);
    for (let i = 1; i <= 6; i++) {
      const sha = `cccccc${i}`;
      commits.set(sha, { sha, committedAt: NEW.committedAt + i });
      await requestUpdate(ctx, { repo: REPO, sha });
      await fleet.pass(30);
      expect(await hash()).toBe(sha);
    }
    const tables = fleet.world.sql.tables<DeploymentTables>();
    const kept = await tables.selectFrom("builds").select("sha").orderBy("id").execute();
    expect(kept.map(({ sha }) => sha)).toEqual([2, 3, 4, 5, 6].map((i) => `cccccc${i}`));
    const swept = await fleet.world.redis.commands.zrange("files:purgatory", "0", "-1");
    expect(swept.map((member) => JSON.parse(member).key.split("/")[2])).toEqual(
      expect.arrayContaining([OLD.sha, "cccccc1"]),
    );
  });

  it("are reported by the audit when the current one has no row", async () => {
    await fleet.world.redis.commands.set(keys.buildHash({ repo: REPO }), "ddddddd4");
    expect(await broken()).toEqual([expect.stringContaining("ddddddd4")]);
  });
});
