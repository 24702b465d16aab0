import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { type Context, jobKeys } from "../../src/jobs/index.ts";
import { sharedPgliteUrl, sharePglite } from "../../src/kernel/sql/shared-pglite.ts";
import { BUSY_ENGINE, type Engine, furnish, openEngine } from "../furnish.ts";
import { temporaryRedis } from "../kit.ts";
import type { Order, Round, Told, WorkerKind } from "./worker.ts";

/**
 * A house whose workers are processes of their own, as they are where it is busy, and whose providers answer at once inside
 * them: what is measured is Carillon alone. Queues, scripts, tables and callbacks are the real ones, on a Redis and an SQL
 * engine of its own. This process fills the queues and watches.
 */
export interface BenchHouse {
  /** What producers use. */
  readonly outside: Context;
  /** How many messages the providers have, and how many callbacks ran, since the workers began. */
  readonly progress: { readonly sent: number; readonly heard: number };
  /** Hears of messages that are not counted, such as sign-in codes. */
  onOther: (to: string) => void;
  /** Lets the workers begin; answers how to end the round, which fails if anything went wrong in it. */
  work(): Promise<() => Promise<Round>>;
  length(key: string): Promise<number>;
  /** Seconds of processor time that the SQL engine has used. */
  sqlTime(): number;
  clear(): Promise<void>;
  close(): Promise<void>;
}

export async function openBenchHouse(kind: WorkerKind, workers: number): Promise<BenchHouse> {
  const server = await temporaryRedis();
  const engine = await openEngine(BUSY_ENGINE);
  const shared = engine.url === undefined ? await share(engine) : { url: engine.url, close: async () => {} };
  const outer = await server.connect();
  const outside = furnish({ redis: outer, sql: engine.sql });
  const crew: Hand[] = [];
  for (let instance = 1; instance <= workers; instance++) crew.push(new Hand((to) => house.onOther(to)));
  await Promise.all(
    crew.map((hand, at) => {
      const start = {
        kind,
        instance: String(at + 1),
        redisSocket: server.socketPath,
        sqlUrl: shared.url,
      };
      return hand.do({ start }, "ready");
    }),
  );
  const { commands, topology } = outer;
  const length = async (key: string) => {
    const name = topology.key(key as never);
    const type = await commands.type(name);
    if (type === "none") return 0;
    return type === "zset" ? commands.zcard(name) : commands.llen(name);
  };
  const sum = (of: (hand: Hand) => number) => crew.reduce((total, hand) => total + of(hand), 0);
  const end = async () => {
    const rounds = await Promise.all(crew.map((hand) => hand.do("end", "ended")));
    const round = together(rounds.map((told) => (told as Extract<Told, { is: "ended" }>).round));
    const failed = await length(jobKeys.failed());
    const aside = await commands.keys("quarantine:*");
    if (failed > 0 || aside.length > 0 || round.alerts.length > 0)
      throw new Error(
        `not all went well: ${failed} failed jobs, set aside ${aside.join(", ")}, told ${round.alerts[0]}`,
      );
    return round;
  };
  const house: BenchHouse = {
    outside,
    progress: {
      get sent() {
        return sum((hand) => hand.sent);
      },
      get heard() {
        return sum((hand) => hand.heard);
      },
    },
    onOther: () => {},
    async work() {
      for (const hand of crew) hand.forget();
      await Promise.all(crew.map((hand) => hand.do("begin", "begun")));
      return end;
    },
    length,
    sqlTime: engine.processor,
    async clear() {
      await commands.flushall();
    },
    async close() {
      await Promise.all(crew.map((hand) => hand.close()));
      outside.subscriber.close();
      await shared.close();
      await engine.close();
      await server.close();
    },
  };
  return house;
}

/** The embedded engine, where other processes find it. */
async function share({ sql }: Engine) {
  const directory = mkdtempSync(join(tmpdir(), "carillon-bench-sql-"));
  const shared = await sharePglite(sql, directory);
  return {
    url: sharedPgliteUrl(directory),
    async close() {
      await shared.close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** A worker's process, as this one sees it. */
class Hand {
  readonly #child: ChildProcess;
  sent = 0;
  heard = 0;
  #awaited: { readonly is: Told["is"]; resolve(told: Told): void; reject(error: Error): void } | undefined;
  #closing = false;

  constructor(onOther: (to: string) => void) {
    this.#child = fork(new URL("./worker.js", import.meta.url), { stdio: ["ignore", "inherit", "inherit", "ipc"] });
    const end = () => void this.#child.kill("SIGKILL");
    process.once("exit", end);
    this.#child.once("exit", (code) => {
      process.off("exit", end);
      if (!this.#closing) this.#awaited?.reject(new Error(`a worker's process ended with ${code}`));
    });
    this.#child.on("message", (told: Told) => {
      if (told.is === "under way") [this.sent, this.heard] = [told.sent, told.heard];
      else if (told.is === "other") onOther(told.to);
      else if (told.is === this.#awaited?.is) this.#awaited.resolve(told);
    });
  }

  do(order: Order, is: Told["is"]): Promise<Told> {
    return new Promise((resolve, reject) => {
      this.#awaited = { is, resolve, reject };
      this.#child.send(order);
    });
  }

  forget(): void {
    [this.sent, this.heard] = [0, 0];
  }

  async close(): Promise<void> {
    this.#closing = true;
    const ended = once(this.#child, "exit");
    this.#child.send("close");
    await ended;
  }
}

function together(rounds: readonly Round[]): Round {
  const sum = (of: (round: Round) => number) => rounds.reduce((total, round) => total + of(round), 0);
  return {
    spent: {
      redis: sum(({ spent }) => spent.redis),
      sql: sum(({ spent }) => spent.sql),
      processor: sum(({ spent }) => spent.processor),
    },
    sent: rounds.flatMap(({ sent }) => sent),
    heard: rounds.flatMap(({ heard }) => heard),
    alerts: rounds.flatMap(({ alerts }) => alerts),
  };
}

/** Often enough for rounds of seconds, and seldom enough not to be noticed by what is measured. */
const LOOK_EVERY_MS = 5;

/** Looks again and again until it is so. */
export async function until(fact: () => boolean | Promise<boolean>, what: string, seconds = 300): Promise<void> {
  const deadline = performance.now() + seconds * 1000;
  while (!(await fact())) {
    if (performance.now() > deadline) throw new Error(`${what} did not come about within ${seconds} s`);
    await pause(LOOK_EVERY_MS);
  }
}

/** Fails unless each of `count` messages was given to a provider once. */
export function expectSentOnce(sent: readonly number[], count: number, what: string): void {
  const times = new Uint8Array(count);
  for (const index of sent) times[index]! += 1;
  const wrong = times.findIndex((each) => each !== 1);
  if (wrong >= 0) throw new Error(`${what} ${wrong} was given to the provider ${times[wrong]} times`);
  if (sent.length !== count) throw new Error(`${sent.length} of ${count} ${what}s were sent`);
}

/** Fails unless every one of these callbacks tells of another message, and they are as many as there were messages. */
export function expectEachOnce(uids: readonly string[], wanted: readonly string[], what: string): void {
  const told = new Set(uids);
  if (uids.length !== wanted.length || told.size !== uids.length || wanted.some((uid) => !told.has(uid)))
    throw new Error(`${uids.length} callbacks of ${told.size} ${what} ran, not one for each of ${wanted.length}`);
}
