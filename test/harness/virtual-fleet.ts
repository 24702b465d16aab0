import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type DeploymentTables,
  migrations as deploymentMigrations,
} from "../../src/infrastructure/deployments/tables.ts";
import { migrations as fileMigrations } from "../../src/infrastructure/files/tables.ts";
import type { Context, Jobs } from "../../src/jobs/context.ts";
import type { AlertRecorder } from "../../src/kernel/alerts.ts";
import type { KernelContext } from "../../src/kernel/context.ts";
import { migrate, pingSql, type Sql } from "../../src/kernel/sql/index.ts";
import { Locks } from "../../src/mechanisms/lock/index.ts";
import { DiskStore } from "../../src/providers/disk-store.ts";
import type { Providers } from "../../src/providers/index.ts";
import { openTestContext, type TestContext } from "./context.ts";
import { eventually } from "./facts.ts";

const ROUNDS_UNTIL_QUIET = 2;
const MARK = "test:mark";

interface Ear {
  heard: number;
  readonly listens: Promise<unknown>;
}

/** Several processes of several machines in one: one Redis, one database, one object store, one clock. */
export interface VirtualFleet {
  readonly world: TestContext;
  /** Another process, with a data folder of its own machine. */
  machine(overrides?: Partial<KernelContext>): {
    readonly ctx: Context & { readonly alerts: AlertRecorder };
    readonly directory: string;
  };
  /** Lets time pass second by second; after each, everything that it set off has come to rest. */
  pass(seconds: number, look?: () => Promise<void> | void): Promise<void>;
  /** The same in steps of ten seconds, for times in which nothing but waiting happens. */
  wait(seconds: number): Promise<void>;
  /** Forgets machines, keys and rows, for the next test of the file. */
  reset(): Promise<void>;
  close(): Promise<void>;
}

export async function openVirtualFleet(): Promise<VirtualFleet> {
  const world = await openTestContext({ sql: true });
  await migrate(world.sql, [
    { domain: "files", migrations: fileMigrations },
    { domain: "deployments", migrations: deploymentMigrations },
  ]);
  const root = mkdtempSync(join(tmpdir(), "carillon-test-fleet-"));
  const objectStore = await DiskStore.open({
    directory: join(root, "objects"),
    bucket: "carillon",
    clock: world.clock,
  });
  const contexts: KernelContext[] = [];
  const ears: Ear[] = [];
  let mark = 0;
  let machines = 0;

  const resources = (kind: RegExp) => process.getActiveResourcesInfo().filter((name) => kind.test(name)).length;
  const servers = resources(/^ProcessWrap$/);
  /** Files being read or written, and child processes beyond the servers that this test runs on. */
  const isAtWork = () => resources(/^FSReq/) > 0 || resources(/^ProcessWrap$/) > servers;
  let statements = 0;
  const sql: Sql = {
    ...world.sql,
    tables: <Tables>() => {
      statements += 1;
      return world.sql.tables<Tables>();
    },
  };
  const commandsSoFar = async () =>
    Number(/^total_commands_processed:(\d+)/m.exec(await world.redis.commands.info("stats"))?.[1]);

  /** What connections deliver is in order: who answered a ping, or heard the mark, has nothing older under way. */
  const deliver = async () => {
    await Promise.all(ears.map((ear) => ear.listens));
    mark += 1;
    await world.redis.commands.publish(MARK, String(mark));
    await Promise.all([
      pingSql(world.sql),
      ...contexts.map((ctx) => ctx.redis.commands.ping()),
      ...ears.map((ear) => eventually(() => ear.heard >= mark, "a message that everybody hears")),
    ]);
    await new Promise(setImmediate);
  };

  /** Goes on until nobody has sent a command or a statement or touched a file for some rounds. */
  const settle = async () => {
    for (let quiet = 0; quiet < ROUNDS_UNTIL_QUIET; ) {
      const [commandsBefore, statementsBefore] = [await commandsSoFar(), statements];
      await deliver();
      // Each round itself costs a look at the count, the mark and one ping a machine.
      const others = (await commandsSoFar()) - commandsBefore - (2 + contexts.length);
      quiet = others > 0 || statements > statementsBefore || isAtWork() ? 0 : quiet + 1;
    }
  };

  return {
    world,
    machine(overrides) {
      const ctx = world.process({ sql, ...overrides });
      contexts.push(ctx);
      const ear: Ear = {
        heard: 0,
        listens: ctx.subscriber.subscribe(MARK, (raw) => {
          ear.heard = Number(raw);
        }),
      };
      ears.push(ear);
      ear.listens.catch(() => {});
      const house = { providers: { objectStore } as unknown as Providers, jobs: {} as Jobs, locks: new Locks(ctx) };
      return { ctx: Object.assign(ctx, house) as typeof ctx & Context, directory: join(root, `machine-${++machines}`) };
    },
    async pass(seconds, look) {
      for (let passed = 0; passed < seconds; passed++) {
        await world.clock.advance(1);
        await settle();
        await look?.();
      }
    },
    async wait(seconds) {
      for (let passed = 0; passed < seconds; passed += 10) {
        await world.clock.advance(10);
        await settle();
      }
    },
    async reset() {
      contexts.length = 0;
      ears.length = 0;
      await world.flush();
      const tables = world.sql.tables<DeploymentTables>();
      await tables.deleteFrom("deployment_events").execute();
      await tables.deleteFrom("builds").execute();
      await tables.deleteFrom("s3_files").execute();
    },
    async close() {
      await world.close();
      rmSync(root, { recursive: true, force: true });
    },
  };
}
