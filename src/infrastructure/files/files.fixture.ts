import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sql } from "kysely";
import type { z } from "zod";
import { openTestContext } from "../../../test/harness/context.ts";
import type { Context, JobContext } from "../../jobs/context.ts";
import { jobKeys } from "../../jobs/keys.ts";
import { JobQueue } from "../../jobs/queue.ts";
import { RecurringSet } from "../../jobs/recurring-set.ts";
import { type AnyRunner, defineRunner, type Runner } from "../../jobs/runner.ts";
import type { AlertRecorder } from "../../kernel/alerts.ts";
import { Config } from "../../kernel/config.ts";
import type { KernelContext } from "../../kernel/context.ts";
import { migrate } from "../../kernel/sql/index.ts";
import { Locks } from "../../mechanisms/lock/index.ts";
import { DiskStore } from "../../providers/disk-store.ts";
import type { ObjectStore } from "../../providers/object-store.ts";
import { settings as accessSettings } from "../access/settings.ts";
import { invariants } from "./invariants.ts";
import { recurring, runners, sweepPartialFileUploads } from "./jobs.ts";
import { keys } from "./keys.ts";
import type { FileTransaction, StoredFile } from "./put.ts";
import { type FileTables, migrations } from "./tables.ts";

export type TestFiles = Awaited<ReturnType<typeof openTestFiles>>;
export type TestProcess = Context & { readonly alerts: AlertRecorder };

/** What a run is told by its worker. */
export interface RunOptions {
  readonly jobUid?: string;
  shuttingDown?(): boolean;
  budgetExhausted?(): boolean;
}

export class BouncedInTest extends Error {}

/** Real Redis, SQL and folder store for the tests of this room, with a table that refers to files. */
export async function openTestFiles(options: { jobs?: readonly AnyRunner[] } = {}) {
  const house = await openTestContext({ sql: true });
  const directory = mkdtempSync(join(tmpdir(), "carillon-test-files-"));
  const store = await DiskStore.open({ directory, bucket: "carillon", clock: house.clock });
  await migrate(house.sql, [{ domain: "files", migrations }]);
  await house.sql.script("create table pictures (file_id bigint not null references s3_files (id) on delete restrict)");

  const process = (overrides: Partial<KernelContext> & { objectStore?: ObjectStore } = {}): TestProcess => {
    const { objectStore = store, ...kernel } = overrides;
    const config = new Config([]).with([accessSettings.rootSecret, "a root secret for tests, long enough"]);
    const base = house.process({ config, ...kernel });
    const plan = { runners: [...runners, ...(options.jobs ?? [])], recurring: new RecurringSet(recurring, "UTC") };
    return Object.defineProperties(
      { jobs: new JobQueue(base, plan), locks: new Locks(base), providers: { objectStore } },
      Object.getOwnPropertyDescriptors(base),
    ) as unknown as TestProcess;
  };

  const rows = () => house.sql.tables<FileTables>().selectFrom("s3_files").selectAll().orderBy("key").execute();
  const objects = async () => {
    const found: { key: string; size: number }[] = [];
    for await (const { key, size } of store.list("")) found.push({ key, size });
    return found;
  };
  const run = <K extends z.ZodType>(ctx: Context, runner: Runner<K>, kwargs: z.input<K>, told: RunOptions = {}) =>
    runner.run!(jobContext(ctx, runner.name, told), runner.kwargs.parse(kwargs));

  return {
    house,
    clock: house.clock,
    store,
    process,
    run,
    rows,
    objects,
    /** Objects without a row, rows without an object, and rows whose object has another size. */
    async mismatches(): Promise<string[]> {
      const [recorded, stored] = [await rows(), await objects()];
      const sizes = new Map(stored.map(({ key, size }) => [key, size]));
      const known = new Set(recorded.map(({ key }) => key));
      return [
        ...stored.filter(({ key }) => !known.has(key)).map(({ key }) => `object without row: ${key}`),
        ...recorded
          .filter(({ key, file_size }) => sizes.get(key) !== file_size)
          .map(({ key, file_size }) => `row says ${file_size} bytes, store says ${sizes.get(key)}: ${key}`),
      ];
    },
    /** The jobs that wait, oldest first. */
    async queued(): Promise<{ name: string; kwargs: Record<string, unknown>; job_uid?: string }[]> {
      return (await house.redis.commands.lrange(jobKeys.hot(), 0, -1)).map((raw) => JSON.parse(raw));
    },
    members: () => house.redis.commands.zrange(keys.purgatory(), 0, "-1"),
    beingSwept: () => house.redis.commands.zrange(keys.sweepPurgatory(), 0, "-1"),
    sweep: (ctx: Context, told?: RunOptions) => run(ctx, sweepPartialFileUploads, {}, told),
    async brokenInvariants(): Promise<string[]> {
      return (await Promise.all(invariants.map((invariant) => invariant.check(house)))).flat();
    },
    /** Empties everything, for the next case. */
    async reset(): Promise<void> {
      await house.flush();
      await house.sql.script("truncate pictures, s3_file_upload_parts, s3_file_uploads, s3_files cascade");
      for (const { key } of await objects()) await store.delete(key);
    },
    async close(): Promise<void> {
      await house.close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

function jobContext(ctx: Context, name: string, told: RunOptions): JobContext {
  const stopping = new AbortController();
  const own = {
    job: { name, uid: undefined, jobUid: told.jobUid, queuedAt: 0, attempt: 0, deliveries: 0, bounces: 0 },
    signal: stopping.signal,
    shuttingDown: () => told.shuttingDown?.() ?? false,
    sleep: (seconds: number) => ctx.clock.sleep(seconds),
    budget: { exhausted: () => told.budgetExhausted?.() ?? false },
    progress: async () => {},
    bounce: () => new BouncedInTest("given back"),
  };
  return Object.defineProperties(own, Object.getOwnPropertyDescriptors(ctx)) as unknown as JobContext;
}

/** A row that needs the file, as a domain with pictures would have it. */
export const asPicture = {
  async add(tx: FileTransaction, file: StoredFile) {
    await sql`insert into pictures (file_id) values (${file.id})`.execute(tx);
  },
  async remove(tx: FileTransaction, file: StoredFile) {
    await sql`delete from pictures where file_id = ${file.id}`.execute(tx);
  },
};

class Killed extends Error {
  override readonly name = "Killed";
}

/**
 * The same process with a death inside: at its Nth step, be it a script, an operation of the store or a transaction, it
 * dies before or after the step happened, and nothing it still tries gets through.
 */
export function doomed(ctx: TestProcess, plan: { dieAt: number; death: "before" | "after" }) {
  let steps = 0;
  let dead = false;
  const step = async <T>(work: () => Promise<T>): Promise<T> => {
    if (dead) throw new Killed();
    if (++steps !== plan.dieAt) return work();
    dead = true;
    if (plan.death === "after") await work().catch(() => {});
    throw new Killed();
  };
  const around = <T extends object>(target: T, methods: readonly string[]): T =>
    new Proxy(target, {
      get(object, name) {
        const value = Reflect.get(object, name, object) as unknown;
        if (typeof value !== "function") return value;
        const bound = value.bind(object) as (...args: unknown[]) => Promise<unknown>;
        return methods.includes(String(name)) ? (...args: unknown[]) => step(() => bound(...args)) : bound;
      },
    });
  const tables = ctx.sql.tables<never>();
  const database = new Proxy(tables, {
    get(object, name) {
      const value = Reflect.get(object, name, object) as unknown;
      if (name === "transaction") return () => around(object.transaction(), ["execute"]);
      if (typeof value !== "function") return value;
      return (...args: unknown[]) => {
        if (dead) throw new Killed();
        return (value as (...args: unknown[]) => unknown).apply(object, args);
      };
    },
  });
  return Object.defineProperties(
    {},
    {
      ...Object.getOwnPropertyDescriptors(ctx),
      redis: { value: around(ctx.redis, ["run"]) },
      providers: {
        value: { objectStore: around(ctx.providers.objectStore, ["put", "get", "head", "delete"]) },
      },
      sql: { value: { ...ctx.sql, tables: () => database } },
    },
  ) as unknown as TestProcess;
}

/** A runner for tests that only look at what was queued. */
export function neverRun<K extends z.ZodType>(name: `runners.${string}`, kwargs: K): Runner<K> {
  return defineRunner({ name, category: 2, kwargs, doc: "Queued by tests and never run.", run: async () => {} });
}
