import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { eventually } from "../../../test/harness/facts.ts";
import { openVirtualFleet, type VirtualFleet } from "../../../test/harness/virtual-fleet.ts";
import { findBuild } from "./builds.ts";
import { keys } from "./keys.ts";
import { type Deployments, requestUpdate, startDeployments } from "./service.ts";
import { settings } from "./settings.ts";
import { takeTurn } from "./turn.ts";

const REPO = "frontend-web";

let fleet: VirtualFleet;
let folder: string;
let checkout: string;
const started: Deployments[] = [];

beforeAll(async () => {
  fleet = await openVirtualFleet();
});
afterAll(() => fleet.close());
beforeEach(async () => {
  await fleet.reset();
  folder = mkdtempSync(join(tmpdir(), "carillon-test-deployments-"));
  checkout = join(folder, "checkout");
  git("init", "--quiet", checkout);
  commit("first");
});
afterEach(async () => {
  await Promise.all(started.splice(0).map((deployments) => deployments.close()));
  rmSync(folder, { recursive: true, force: true });
});

function git(...args: string[]): string {
  const identity = ["-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false"];
  return execFileSync("git", [...identity, ...args], { encoding: "utf8" }).trim();
}

/** A commit whose one file says `content`; answers its sha. */
function commit(content: string): string {
  writeFileSync(join(checkout, "index.html"), content);
  git("-C", checkout, "add", "index.html");
  git("-C", checkout, "commit", "--quiet", "-m", content);
  return git("-C", checkout, "rev-parse", "HEAD");
}

async function start(repos: readonly string[], command: string | undefined) {
  const { ctx, directory } = fleet.machine({
    config: fleet.world.config.with(
      [settings.checkouts, { [REPO]: checkout }],
      [settings.buildCommand, command],
      [settings.updateCommand, `echo "$CARILLON_UPDATE_REPO $CARILLON_UPDATE_SHA" > ${folder}/updated`],
    ),
  });
  const exits: boolean[] = [];
  const options = {
    repos,
    directory,
    shutdown: async () => {},
    exit: ({ restart }: { restart: boolean }) => void exits.push(restart),
  };
  const deployments = await startDeployments(ctx, options);
  started.push(deployments);
  return { ctx, directory, exits, deployments, restart: () => startDeployments(ctx, options) };
}

const archive = `git -C "${"$"}{CHECKOUT}" archive --format=tar.gz -o "$CARILLON_BUILD_OUTPUT" "$CARILLON_BUILD_SHA"`;
const buildCommand = () => `test "$CARILLON_BUILD_REPO" = ${REPO} && CHECKOUT=${checkout} && ${archive}`;

describe("the deployments of a process", () => {
  it("build with the configured command and serve what was built", async () => {
    const one = await start([REPO], buildCommand());
    const first = git("-C", checkout, "rev-parse", "HEAD");
    await fleet.pass(12);
    expect(await findBuild(fleet.world, REPO, first)).toMatchObject({ state: "ready" });
    expect(one.deployments.folderOf(REPO)).toBeUndefined();

    const second = commit("second");
    await requestUpdate(one.ctx, { repo: REPO });
    await fleet.pass(30);
    expect(await fleet.world.redis.commands.get(keys.buildHash({ repo: REPO }))).toBe(second);
    expect(one.exits).toEqual([true]);
    await one.deployments.close();
    const successor = await one.restart();
    started.push(successor);
    await successor.announceReady();
    expect(readFileSync(join(successor.folderOf(REPO)!, "index.html"), "utf8")).toBe("second");
    expect(await fleet.world.redis.commands.exists(keys.lock({ repo: REPO }))).toBe(0);
  });

  it("say what a failing build command said", async () => {
    const one = await start([REPO], "echo 'no space left' >&2; exit 3");
    await fleet.pass(12);
    const first = git("-C", checkout, "rev-parse", "HEAD");
    expect(await findBuild(fleet.world, REPO, first)).toMatchObject({
      state: "failed",
      error: "the build command answered 3: no space left",
    });
    expect(one.ctx.alerts.identifiers()).toContain("builds:failed");
  });

  it("end the build command with all that it started when they are closed", async () => {
    const one = await start([REPO], `echo $$ > ${folder}/pid; sleep 1000; true`);
    await fleet.world.clock.advance(5);
    const pid = await eventually(() =>
      existsSync(`${folder}/pid`) ? Number(readFileSync(`${folder}/pid`, "utf8")) : undefined,
    );
    await one.deployments.close();
    await eventually(() => {
      try {
        process.kill(pid, 0);
        return false;
      } catch {
        return true;
      }
    }, "the end of the build command");
    expect(await fleet.world.redis.commands.exists(keys.lock({ repo: REPO }))).toBe(0);
  });

  it("run the update command of a plain unit, detached, with unit and commit", async () => {
    const one = await start(["backend", "jobs"], undefined);
    await requestUpdate(one.ctx, { repo: "jobs", sha: "abcdef1" });
    await fleet.pass(8);
    await eventually(() => existsSync(`${folder}/updated`));
    await eventually(() => readFileSync(`${folder}/updated`, "utf8") === "jobs abcdef1\n");
    expect(one.exits).toEqual([false]);
  });

  it("leave the turn of another process of the same machine alone", async () => {
    const one = await start(["backend"], undefined);
    const turn = await takeTurn(
      one.ctx,
      { repo: "backend", directory: one.directory },
      { signal: new AbortController().signal, sha: () => undefined },
    );
    // The first process still lives and listens; a second one starts beside it.
    const second = await one.restart();
    started.push(second);
    await second.announceReady();
    expect(await fleet.world.redis.commands.get(keys.lock({ repo: "backend" }))).toBe(turn?.token);
    await one.deployments.close();
    const successor = await one.restart();
    started.push(successor);
    await successor.announceReady();
    expect(await fleet.world.redis.commands.exists(keys.lock({ repo: "backend" }))).toBe(0);
  });
});
