import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { migrationsOf } from "../../src/domain.ts";
import { domains } from "../../src/domains.ts";
import { settings as accessSettings } from "../../src/infrastructure/access/settings.ts";
import { putFile, queueDelete, startUpload, uploadPart } from "../../src/infrastructure/files/service.ts";
import type { FileTables } from "../../src/infrastructure/files/tables.ts";
import { readFailed } from "../../src/jobs/admin.ts";
import { defineRunner, jobKeys } from "../../src/jobs/index.ts";
import { audit, Catalogue } from "../../src/kernel/keyspace/index.ts";
import { migrate } from "../../src/kernel/sql/index.ts";
import { DiskStore } from "../../src/providers/disk-store.ts";
import { FaultyObjectStore } from "../../src/sandbox/object-store-faults.ts";
import { type MortalConnection, mortalConnection } from "../harness/chaos.ts";
import { openTestContext, type TestContext } from "../harness/context.ts";
import { type JobProcess, jobProcess } from "../harness/jobs.ts";
import { passTime, passTimeUntil } from "../harness/time.ts";

const SEED = 20261115;
const FAULTS = 0.1;
const MINUTES = 5 * 60;
const DEATH_EVERY_MINUTES = 97;
/** The channels look at their queues every few seconds and have bad weeks of their own. */
const QUIET = new Set(["sms", "email", "push", "messages", "links", "touch", "reminders"]);

let house: TestContext;
let directory: string;
let disk: DiskStore;
let store: FaultyObjectStore;
beforeAll(async () => {
  house = await openTestContext({ sql: true, ttlGrain: 10 });
  await migrate(house.sql, domains.flatMap(migrationsOf));
  directory = mkdtempSync(join(tmpdir(), "carillon-simulation-"));
  disk = await DiskStore.open({ directory, bucket: "carillon", clock: house.clock });
  const failing = { rate: FAULTS, fault: "SlowDown" } as const;
  store = new FaultyObjectStore(disk, {
    clock: house.clock,
    seed: SEED,
    knobs: { failures: { put: failing, get: failing, delete: failing, head: failing }, replyLost: FAULTS },
  });
});
afterAll(async () => {
  await house.close();
  rmSync(directory, { recursive: true, force: true });
});

/** The same seed gives the same hours. */
function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

test("after five hours of faults and deaths nothing is lost and the keyspace is in order", {
  timeout: 240_000,
}, async () => {
  const random = seeded(SEED);
  const ran = new Map<number, number>();
  const work = defineRunner({
    name: "runners.simulated",
    category: 2,
    doc: "fails now and then, as work does",
    kwargs: z.object({ n: z.number() }),
    retry: [60, 300, 1800],
    async run(_ctx, { n }) {
      if (random() < FAULTS) throw new Error("bad luck");
      ran.set(n, (ran.get(n) ?? 0) + 1);
    },
  });
  const told: string[] = [];
  const uploaded = defineRunner({
    name: "runners.simulated_upload",
    category: 2,
    doc: "hears how an upload ended",
    kwargs: z.object({ file_upload_uid: z.string(), outcome: z.string() }),
    run: async (_ctx, { file_upload_uid, outcome }) => void told.push(`${outcome} ${file_upload_uid}`),
  });

  const newProcess = async () => {
    const connection = await mortalConnection(house.server);
    const process = jobProcess(house, {
      runners: [...domains.flatMap(({ runners = [] }) => runners), work, uploaded],
      recurring: domains.flatMap(({ name, recurring = [] }) => (QUIET.has(name) ? [] : recurring)),
      settings: { deadAfter: 300 },
      config: [[accessSettings.rootSecret, "a root secret for tests, long enough"]],
      overrides: { redis: connection },
      providers: { objectStore: store },
    });
    await process.worker.start();
    return { ...process, connection };
  };
  type Living = JobProcess & { connection: MortalConnection };
  const fleet: Living[] = [await newProcess(), await newProcess()];
  const die = async ({ connection, worker }: Living) => {
    connection.dead = true;
    await worker.stop(AbortSignal.abort()).catch(() => {});
  };

  let queued = 0;
  const uploads: string[] = [];
  for (let minute = 0; minute < MINUTES; minute++) {
    const { ctx, jobs } = fleet[minute % fleet.length]!;
    await jobs.enqueueMany(work, [{ n: queued++ }, { n: queued++ }]);
    // Whatever the store refuses, the caller sees; what it leaves behind is the sweep's to clear.
    if (minute % 3 === 0) {
      const stored = await putFile(ctx, Buffer.from(`file of minute ${minute}`), {
        purpose: "processing_output",
        contentType: "text/plain",
        keyPrefix: "s3_files/simulation",
      }).catch(() => undefined);
      if (stored && random() < 0.5) await queueDelete(ctx, [stored], { hint: "simulation" });
    }
    if (minute % 20 === 0) {
      const outcome = (name: string) => ({ runner: uploaded, kwargs: { file_upload_uid: "", outcome: name } });
      const upload = await startUpload(ctx, {
        fileSize: 10,
        successJob: outcome("success"),
        failureJob: outcome("failure"),
      });
      uploads.push(upload.uid);
      if (random() < 0.7)
        await uploadPart(ctx, { uploadUid: upload.uid, partNumber: 1 }, Buffer.alloc(10)).catch(() => {});
    }
    await passTime(house, 60, 60);
    if (minute % DEATH_EVERY_MINUTES === DEATH_EVERY_MINUTES - 1) {
      await die(fleet.shift()!);
      fleet.push(await newProcess());
    }
  }

  store.knobs = {};
  await passTimeUntil(house, async () => (await house.redis.commands.exists(jobKeys.hot(), jobKeys.delayed())) === 0, {
    step: 60,
    limit: 6 * 3600,
    what: "empty queues",
  });
  await passTime(house, 3 * 3600, 60);
  for (const { worker } of fleet) await worker.stop();

  expect(store.injected).toBeGreaterThan(30);
  const failed = await readFailed(house, { limit: 100_000, offset: 0 });
  const failedNumbers = new Set(failed.map(({ raw }) => (JSON.parse(raw) as { kwargs: { n: number } }).kwargs.n));
  const lost = Array.from({ length: queued }, (_, n) => n).filter((n) => !ran.has(n) && !failedNumbers.has(n));
  expect(lost).toEqual([]);
  expect(new Set(told.map((line) => line.split(" ")[1]))).toEqual(new Set(uploads));

  const rows = await house.sql.tables<FileTables>().selectFrom("s3_files").select("key").execute();
  const objects: string[] = [];
  for await (const { key } of disk.list("")) objects.push(key);
  expect(objects.sort()).toEqual(rows.map(({ key }) => key).sort());

  const catalogue = new Catalogue(domains);
  const invariants = domains.flatMap((room) => room.invariants ?? []);
  const report = await audit(house, catalogue, { invariants, deep: true });
  expect(report.findings).toEqual([]);
});
