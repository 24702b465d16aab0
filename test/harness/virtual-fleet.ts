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
import { migrate, pingSql } from "../../src/kernel/sql/index.ts";
import { Locks } from "../../src/mechanisms/lock/index.ts";
import { DiskStore } from "../../src/providers/disk-store.ts";
import type { Providers } from "../../src/providers/index.ts";
import { openTestContext, type TestContext } from "./context.ts";

const ROUNDS_UNTIL_QUIET = 6;

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
  let machines = 0;

  const atWork = () =>
    process.getActiveResourcesInfo().filter((name) => name.startsWith("FSReq") || name === "ProcessWrap").length;
  const atRest = atWork();

  /**
   * Commands of a connection are answered in order, so an answer to a ping says that all before it were answered. Files
   * and child processes have no such order: as long as one is at work, nothing is at rest.
   */
  const settle = async () => {
    for (let quiet = 0; quiet < ROUNDS_UNTIL_QUIET; quiet = atWork() > atRest ? 0 : quiet + 1) {
      await Promise.all([pingSql(world.sql), ...contexts.map((ctx) => ctx.redis.commands.ping())]);
      await new Promise(setImmediate);
    }
  };

  return {
    world,
    machine(overrides) {
      const ctx = world.process(overrides);
      contexts.push(ctx);
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
