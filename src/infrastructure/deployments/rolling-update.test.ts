import { existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { eventually } from "../../../test/harness/facts.ts";
import { openVirtualFleet, type VirtualFleet } from "../../../test/harness/virtual-fleet.ts";
import { keys } from "./keys.ts";
import { LocalToken } from "./local-token.ts";
import { startPlainUpdater, type Updater, type UpdaterOptions } from "./plain-updater.ts";
import { requestUpdate } from "./service.ts";
import type { DeploymentTables } from "./tables.ts";
import { announceReady, takeTurn } from "./turn.ts";

const RESTART = 20;
const REPO = "backend";

let fleet: VirtualFleet;
const running: Updater[] = [];
let currentTest = 0;

beforeAll(async () => {
  fleet = await openVirtualFleet();
});
afterAll(() => fleet.close());
beforeEach(async () => {
  currentTest += 1;
  await Promise.all(running.splice(0).map((updater) => updater.close()));
  await fleet.reset();
});

/** An instance that restarts 20 s after it went down, unless it is not to come back. */
async function instance(options: { comesBack?: () => boolean; runUpdate?: UpdaterOptions["runUpdate"] } = {}) {
  const { ctx, directory } = fleet.machine();
  const bornIn = currentTest;
  const state = {
    ctx,
    directory,
    up: true,
    generation: 1,
    wentDownAt: 0,
    exits: [] as boolean[],
    requests: 0,
    updater: undefined as Updater | undefined,
  };
  const listen = async () => {
    const updater = await startPlainUpdater(ctx, {
      repo: REPO,
      directory,
      runUpdate: options.runUpdate,
      shutdown: async () => {
        state.up = false;
        state.wentDownAt = ctx.clock.now();
      },
      exit({ restart }) {
        state.exits.push(restart);
        if (restart && (options.comesBack?.() ?? true)) void restartLater();
      },
      onUpdateRequested: () => {
        state.requests += 1;
      },
    });
    if (updater) running.push(updater);
    state.updater = updater;
  };
  const restartLater = async () => {
    await state.updater?.close();
    await ctx.clock.sleep(RESTART);
    // Time goes on in later tests, where nobody expects this instance.
    if (currentTest !== bornIn) return;
    await listen();
    state.up = true;
    state.generation += 1;
    await announceReady(ctx, { repo: REPO, directory });
  };
  await listen();
  return state;
}

async function events() {
  const rows = await fleet.world.sql
    .tables<DeploymentTables>()
    .selectFrom("deployment_events")
    .selectAll()
    .orderBy("id")
    .execute();
  return rows.map(({ instance: who, event, token, sha }) => ({ who, event, token, sha }));
}

const lock = () => fleet.world.redis.commands.get(keys.lock({ repo: REPO }));

describe("a rolling update", () => {
  it("takes three instances down one after the other and leaves the lock free", async () => {
    const instances = await Promise.all([instance(), instance(), instance()]);
    const { subscribers } = await requestUpdate(instances[0]!.ctx, { repo: REPO, sha: "abcdef1" });
    expect(subscribers).toBe(3);
    let mostDown = 0;
    await fleet.pass(100, () => {
      mostDown = Math.max(mostDown, instances.filter(({ up }) => !up).length);
    });
    expect(mostDown).toBe(1);
    expect(instances.map(({ generation, up }) => ({ generation, up }))).toEqual(
      instances.map(() => ({ generation: 2, up: true })),
    );
    expect(instances.every(({ requests }) => requests === 1)).toBe(true);
    expect(await lock()).toBeNull();
    // Of each turn the beginning and the end are written down, with the same token.
    const written = await events();
    const begun = written.filter(({ event }) => event === "updating");
    expect(begun.map(({ sha }) => sha)).toEqual(["abcdef1", "abcdef1", "abcdef1"]);
    expect(written.filter(({ event }) => event === "ready").map(({ token }) => token)).toEqual(
      begun.map(({ token }) => token),
    );
    expect(written.some(({ event }) => event === "lock_expired")).toBe(false);
    expect(instances.flatMap(({ ctx }) => ctx.alerts.identifiers())).toEqual(["ops", "ops", "ops"]);
  });

  it("goes on 300 s after the second instance did not come back, with an urgent alert", async () => {
    let downs = 0;
    const comesBack = () => ++downs !== 2;
    const instances = await Promise.all([instance({ comesBack }), instance({ comesBack }), instance({ comesBack })]);
    await requestUpdate(instances[0]!.ctx, { repo: REPO });
    await fleet.pass(60);
    await fleet.wait(250);
    await fleet.pass(60);
    const [first, second, third] = instances.toSorted((a, b) => a.wentDownAt - b.wentDownAt);
    expect([first, second, third].map((each) => each?.up)).toEqual([true, false, true]);
    // Redis counts the few seconds that this test takes too, so its 300 s end a little early.
    const waited = third!.wentDownAt - second!.wentDownAt;
    expect(waited).toBeGreaterThanOrEqual(290);
    expect(waited).toBeLessThanOrEqual(302);
    const urgent = instances.flatMap(({ ctx }) => ctx.alerts.recorded.filter(({ level }) => level === "urgent"));
    expect(urgent.map(({ identifier }) => identifier)).toEqual(["updates:lock_expired"]);
    expect(urgent[0]?.text).toContain(second!.ctx.hostname);
    const expired = (await events()).filter(({ event }) => event === "lock_expired");
    expect(expired).toHaveLength(1);
    expect(await lock()).toBeNull();
  });

  it("lets an instance die after it took its turn and be free again when its successor is ready", async () => {
    const { ctx, directory } = fleet.machine();
    const unit = { repo: REPO, directory };
    const turn = await takeTurn(ctx, unit, { signal: new AbortController().signal, sha: () => undefined });
    expect(await lock()).toBe(turn!.token);
    // The process is gone here. Another instance waits, and gets its turn as soon as the successor is ready.
    const waiting = fleet.machine();
    let next: unknown;
    void takeTurn(
      waiting.ctx,
      { repo: REPO, directory: waiting.directory },
      { signal: new AbortController().signal, sha: () => undefined },
    ).then((taken) => {
      next = taken;
    });
    await fleet.pass(30);
    expect(next).toBeUndefined();
    await announceReady(ctx, unit);
    await fleet.pass(2);
    expect(next).toBeDefined();
    expect(ctx.alerts.recorded).toContainEqual(expect.objectContaining({ level: "ops" }));
    expect(waiting.ctx.alerts.identifiers()).toEqual([]);
  });

  it("takes the newest commit when another request comes while it waits", async () => {
    await fleet.world.redis.commands.set(keys.lock({ repo: REPO }), "x".repeat(22), "EX", 30);
    const one = await instance();
    await requestUpdate(one.ctx, { repo: REPO, sha: "aaaaaaa" });
    await fleet.pass(10);
    expect(one.updater?.mode).toBe("waiting");
    expect(one.up).toBe(true);
    await requestUpdate(one.ctx, { repo: REPO, sha: "bbbbbbb" });
    await fleet.pass(25);
    expect((await events()).find(({ event }) => event === "updating")?.sha).toBe("bbbbbbb");
  });

  it("stops without a turn and without a restart when it is told to", async () => {
    const one = await instance();
    await one.ctx.redis.commands.publish(keys.updates({ repo: REPO }), "stop-without-restart");
    await eventually(() => one.exits.length === 1);
    expect(one.exits).toEqual([false]);
    expect(one.up).toBe(false);
    expect(await lock()).toBeNull();
  });

  it("starts the update command with unit and commit instead of leaving the restart to a supervisor", async () => {
    const updates: unknown[] = [];
    const one = await instance({ runUpdate: async (update) => void updates.push(update) });
    await requestUpdate(one.ctx, { repo: REPO, sha: "abcdef1" });
    await fleet.pass(7);
    expect(updates).toEqual([{ repo: REPO, sha: "abcdef1" }]);
    expect(one.exits).toEqual([false]);
  });

  it("restarts the old code when the update command cannot be started", async () => {
    const one = await instance({
      runUpdate: () => Promise.reject(new Error("no such command")),
      comesBack: () => false,
    });
    await requestUpdate(one.ctx, { repo: REPO });
    await fleet.pass(7);
    expect(one.exits).toEqual([true]);
    expect(one.ctx.alerts.recorded.some(({ text }) => text.includes("no such command"))).toBe(true);
  });
});

describe("an update that this machine prevents", () => {
  it("is reported, and the next request tries again", async () => {
    const one = await instance({ comesBack: () => false });
    // A file where the folder for the token should be.
    writeFileSync(join(one.directory, "updates"), "");
    await requestUpdate(one.ctx, { repo: REPO });
    await fleet.pass(7);
    expect(one.up).toBe(true);
    expect(one.ctx.alerts.identifiers()).toEqual(["error"]);
    rmSync(join(one.directory, "updates"));
    await requestUpdate(one.ctx, { repo: REPO });
    await fleet.pass(7);
    expect(one.up).toBe(false);
  });
});

describe("a turn", () => {
  it("is free again, here and on disk, when the update is not going to happen", async () => {
    const { ctx, directory } = fleet.machine();
    const options = { signal: new AbortController().signal, sha: () => undefined };
    const turn = await takeTurn(ctx, { repo: REPO, directory }, options);
    expect(await lock()).toBe(turn?.token);
    expect(new LocalToken(directory, REPO, ctx.clock).read()).toBe(turn?.token);
    await turn?.giveBack();
    expect(await lock()).toBeNull();
    expect(new LocalToken(directory, REPO, ctx.clock).read()).toBeUndefined();
  });
});

describe("the updater of a unit", () => {
  it("is one per machine, held by a pid file", async () => {
    const one = await instance();
    expect(existsSync(join(one.directory, "updater.backend.pid"))).toBe(true);
    const options = { repo: REPO, directory: one.directory, shutdown: async () => {}, exit: () => {} };
    expect(await startPlainUpdater(one.ctx, options)).toBeUndefined();
    await one.updater?.close();
    const successor = await startPlainUpdater(one.ctx, options);
    expect(successor).toBeDefined();
    await successor?.close();
  });
});

describe("the token on local disk", () => {
  it("is kept for 310 s and is gone once it is forgotten", async () => {
    const { ctx, directory } = fleet.machine();
    const local = new LocalToken(directory, REPO, ctx.clock);
    expect(local.read()).toBeUndefined();
    local.write("token");
    await fleet.world.clock.advance(309);
    expect(new LocalToken(directory, REPO, ctx.clock).read()).toBe("token");
    await fleet.world.clock.advance(1);
    expect(local.read()).toBeUndefined();
    local.write("token");
    local.forget();
    expect(local.read()).toBeUndefined();
  });
});
