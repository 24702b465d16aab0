import { expect } from "vitest";
import { z } from "zod";
import { invariants } from "../../src/infrastructure/jobs/invariants.ts";
import { type AnyRunner, defineRunner, type JobContext, jobKeys, type Worker } from "../../src/jobs/index.ts";
import type { RunnerPlan } from "../../src/jobs/runner.ts";
import { mortalConnection } from "../harness/chaos.ts";
import type { TestContext } from "../harness/context.ts";
import { type JobProcess, type JobProcessPlan, jobProcess } from "../harness/jobs.ts";

export const Numbered = z.object({ n: z.number() });

/** A runner whose jobs are told apart by a number. */
export function numbered(
  name: string,
  run: (ctx: JobContext, kwargs: { n: number }) => Promise<void>,
  plan: Partial<Omit<RunnerPlan<typeof Numbered>, "name" | "run" | "kwargs">> = {},
): AnyRunner {
  return defineRunner({
    category: 2,
    doc: "of a test",
    ...plan,
    name: `runners.${name}`,
    kwargs: Numbered,
    run,
  });
}

/** A promise that a test resolves. */
export function gate() {
  let open!: () => void;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open, opened };
}

/** Entries by where they are; each text is what the queue holds. */
export interface Snapshot {
  readonly hot: readonly string[];
  readonly categories: readonly string[];
  readonly running: readonly string[];
  readonly delayed: readonly string[];
  readonly failed: readonly string[];
  readonly quarantine: readonly string[];
}

export interface MortalProcess extends Omit<JobProcess, "stuck"> {
  /** From now on nothing that this process sends arrives. */
  cut(): void;
  mend(): void;
  /** It is gone as after SIGKILL: the server never hears of it again. */
  kill(): Promise<void>;
}

/** One look at everything at once: entries move while a test reads one list after the other. */
const LOOK = `
local places = {}
for i = 1, 6 do
  local command = i == 4 and 'ZRANGE' or 'LRANGE'
  places[i] = redis.call(command, KEYS[i], 0, -1)
end
local running = {}
for _, key in ipairs(redis.call('KEYS', ARGV[1])) do
  for _, entry in ipairs(redis.call('HVALS', key)) do running[#running + 1] = entry end
end
places[7] = running
return places`;

/** Processes of one test file that share its Redis and its clock, and what the keyspace holds of their jobs. */
export class CrashFleet {
  readonly house: TestContext;
  #alive: JobProcess[] = [];

  constructor(house: TestContext) {
    this.house = house;
  }

  async start(plan: JobProcessPlan): Promise<JobProcess> {
    const process = jobProcess(this.house, plan);
    await process.worker.start();
    this.#alive.push(process);
    return process;
  }

  /** A process whose connection the test can cut and mend, and which it can kill. */
  async startMortal(plan: JobProcessPlan): Promise<MortalProcess> {
    const connection = await mortalConnection(this.house.server);
    const process = jobProcess(this.house, { ...plan, overrides: { ...plan.overrides, redis: connection } });
    await process.worker.start();
    this.#alive.push(process);
    return {
      ...process,
      cut: () => {
        connection.dead = true;
      },
      mend: () => {
        connection.dead = false;
      },
      kill: async () => {
        connection.dead = true;
        this.#alive = this.#alive.filter((other) => other !== process);
        await process.worker.stop(AbortSignal.abort());
      },
    };
  }

  /** Everybody ends at once, without a grace period. */
  async stopAll(): Promise<void> {
    const ending = this.#alive;
    this.#alive = [];
    await Promise.all(ending.map(({ worker }) => worker.stop(AbortSignal.abort())));
  }

  async stopAllBut(survivor: Worker): Promise<void> {
    const ending = this.#alive.filter(({ worker }) => worker !== survivor);
    this.#alive = this.#alive.filter(({ worker }) => worker === survivor);
    await Promise.all(ending.map(({ worker }) => worker.stop(AbortSignal.abort())));
  }

  async snapshot(): Promise<Snapshot> {
    const [hot, one, two, delayed, failed, aside, running] = (await this.house.redis.commands.eval(
      LOOK,
      6,
      jobKeys.hot(),
      jobKeys.hotByCategory({ category: 1 }),
      jobKeys.hotByCategory({ category: 2 }),
      jobKeys.delayed(),
      jobKeys.failed(),
      `quarantine:${jobKeys.hot()}`,
      jobKeys.running({ worker_uid: "*" }),
    )) as string[][];
    return {
      hot: hot!,
      categories: [...one!, ...two!],
      running: running!,
      delayed: delayed!,
      failed: failed!.map((text) => JSON.parse(text).raw),
      quarantine: aside!.map((text) => JSON.parse(text).raw),
    };
  }

  /** Whether nothing waits, runs or sleeps any more. */
  async atRest(): Promise<boolean> {
    const { hot, categories, running, delayed } = await this.snapshot();
    return hot.length + categories.length + running.length + delayed.length === 0;
  }

  async expectInvariants(): Promise<void> {
    for (const { name, check } of invariants) expect(await check(this.house as never), name).toEqual([]);
  }
}

export const numberOf = (raw: string): number => JSON.parse(raw).kwargs.n;
export const numbersOf = (raws: readonly string[]): number[] => raws.map(numberOf).sort((a, b) => a - b);
