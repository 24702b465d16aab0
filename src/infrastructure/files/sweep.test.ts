import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { dieAtEveryCommand } from "../../../test/harness/chaos.ts";
import { jobKeys } from "../../jobs/keys.ts";
import { quarantineOf } from "../../mechanisms/quarantine/index.ts";
import { FaultyObjectStore } from "../../sandbox/object-store-faults.ts";
import { errors } from "./errors.ts";
import { asPicture, openTestFiles, type TestFiles } from "./files.fixture.ts";
import { deleteS3FileJob } from "./jobs.ts";
import { keys } from "./keys.ts";
import { deletionOf, protectionOf, protectUntil, renewUntil } from "./purgatory.ts";
import { putFile, type StoredFile } from "./put.ts";
import { listPurgatory, queueDelete, requestDelete } from "./service.ts";

let files: TestFiles;
beforeAll(async () => {
  files = await openTestFiles();
});
beforeEach(() => files.reset());
afterAll(() => files?.close());

const plan = {
  purpose: "image_export",
  contentType: "image/webp",
  keyPrefix: "s3_files/images/exports/crl_x",
} as const;
const put = (content = "x", references?: typeof asPicture) =>
  putFile(files.process(), Buffer.from(content), { ...plan, references });
const at = (key: string) => ({ bucket: "carillon", key });
const waiting = (member: string, due: number) => files.house.redis.commands.zadd(keys.purgatory(), due, member);
const quarantined = async () =>
  (await files.house.redis.commands.lrange(quarantineOf("files:purgatory"), 0, -1)).map((raw) => JSON.parse(raw));

describe("the list of what is deleted later", () => {
  test("a protection keeps the later of two times, a wanted deletion the earlier", async () => {
    const now = files.clock.now();
    const ctx = files.process();
    const score = (member: string) => files.house.redis.commands.zscore(keys.purgatory(), member).then(Number);
    for (const until of [now + 100, now + 300, now + 200]) await protectUntil(ctx, protectionOf(at("a")), until);
    expect(await score(protectionOf(at("a")))).toBe(now + 300);
    await queueDelete(ctx, [at("b")], { hint: "test", when: "soon" });
    await queueDelete(ctx, [at("b")], { hint: "test" });
    await queueDelete(ctx, [at("b")], { hint: "test", when: "soon" });
    expect(await score(deletionOf(at("b"), "test"))).toBe(now);
  });

  test("what the sweep holds can be neither protected nor renewed, and what is gone cannot be renewed", async () => {
    const ctx = files.process();
    const member = protectionOf(at("a"));
    expect(await renewUntil(ctx, member, 10)).toEqual({ ok: false, reason: "gone" });
    await files.house.redis.commands.zadd(keys.sweepPurgatory(), 5, member);
    expect(await protectUntil(ctx, member, 10)).toEqual({ ok: false, reason: "being_swept" });
    expect(await renewUntil(ctx, member, 10)).toEqual({ ok: false, reason: "being_swept" });
    expect(await files.members()).toEqual([]);
  });

  test("an immediate deletion starts the sweep, a later one does not", async () => {
    const ctx = files.process();
    await queueDelete(ctx, [at("a")], { hint: "test", when: "soon" });
    expect(await files.queued()).toEqual([]);
    await queueDelete(ctx, [at("b")], { hint: "test" });
    await expect.poll(files.queued).toMatchObject([{ name: "runners.sweep_partial_file_uploads" }]);
  });

  test("is read in pages that end inside equal times", async () => {
    const ctx = files.process();
    for (let index = 0; index < 25; index++) await waiting(`member ${index}`, 1000 + Math.floor(index / 10));
    const seen: string[] = [];
    let cursor: { due: number; skip: number } | undefined;
    do {
      const page = await listPurgatory(ctx, { limit: 4, cursor });
      seen.push(...page.items.map(({ member }) => member));
      cursor = page.next;
    } while (cursor);
    expect(seen).toHaveLength(25);
    expect(new Set(seen).size).toBe(25);
  });
});

describe("the sweep", () => {
  test("deletes what is due with its row, leaves what is not, and counts both kinds", async () => {
    const ctx = files.process();
    const wanted = await put("wanted");
    const early = await put("early");
    await files.store.put("orphan", Buffer.from("x"), { contentType: "text/plain" });
    await waiting(protectionOf(at("orphan")), files.clock.now());
    await queueDelete(ctx, [wanted], { hint: "test" });
    await queueDelete(ctx, [early], { hint: "test", when: "soon" });
    await files.sweep(ctx);
    expect((await files.objects()).map(({ key }) => key)).toEqual([early.key]);
    expect((await files.rows()).map(({ key }) => key)).toEqual([early.key]);
    expect(ctx.alerts.identifiers()).toEqual(["files:upload_timed_out"]);
    const metrics = await ctx.metrics.text();
    expect(metrics).toContain('carillon_files_swept_total{expected="true"} 1');
    expect(metrics).toContain('carillon_files_swept_total{expected="false"} 1');
  });

  test("keeps a file that something refers to, forgets its member, and rings urgently if its deletion was wanted", async () => {
    const ctx = files.process();
    const file = await put("picture", asPicture);
    await queueDelete(ctx, [file], { hint: "test" });
    await files.sweep(ctx);
    expect(await files.objects()).toHaveLength(1);
    expect(await files.rows()).toHaveLength(1);
    expect(await files.members()).toEqual([]);
    expect(await files.beingSwept()).toEqual([]);
    expect(ctx.alerts.recorded).toMatchObject([{ level: "urgent", identifier: "files:in_use" }]);
  });

  test("finds the few that are in use among many", async () => {
    const ctx = files.process();
    const used: StoredFile[] = [];
    const all: StoredFile[] = [];
    for (let index = 0; index < 23; index++) {
      const file = await put(String(index), index % 9 === 4 ? asPicture : undefined);
      all.push(file);
      if (index % 9 === 4) used.push(file);
    }
    await queueDelete(ctx, all, { hint: "test" });
    await files.sweep(ctx);
    expect((await files.rows()).map(({ key }) => key)).toEqual(used.map(({ key }) => key).sort());
    expect(await files.mismatches()).toEqual([]);
    expect(await files.members()).toEqual([]);
  });

  test("accepts members with another order of fields and other whitespace, which the audit reports", async () => {
    const ctx = files.process();
    const file = await put();
    await waiting(`{ "key": "${file.key}",\n "expected": true, "bucket": "carillon" }`, files.clock.now());
    expect(await files.brokenInvariants()).toHaveLength(1);
    await files.sweep(ctx);
    expect(await files.objects()).toEqual([]);
    expect(await files.members()).toEqual([]);
    expect(await files.beingSwept()).toEqual([]);
    expect(ctx.alerts.recorded).toEqual([]);
  });

  test("sets aside what makes no sense, once each, and goes on", async () => {
    const ctx = files.process();
    const file = await put();
    const senseless = [
      "not json",
      "[]",
      '{"bucket":"carillon"}',
      '{"bucket":"carillon","key":"a","more":1}',
      '{"bucket":"elsewhere","key":"a"}',
      '{"bucket":"carillon","key":"../../etc/passwd"}',
    ];
    for (const member of senseless) await waiting(member, files.clock.now() - 1);
    await queueDelete(ctx, [file], { hint: "test" });
    await files.sweep(ctx);
    await files.sweep(files.process());
    expect((await quarantined()).map(({ raw }) => raw).sort()).toEqual([...senseless].sort());
    expect((await quarantined()).every(({ queue, id, reason }) => queue === "files:purgatory" && id && reason)).toBe(
      true,
    );
    expect(await files.objects()).toEqual([]);
    expect(await files.beingSwept()).toEqual([]);
  });

  test("waits ten minutes when the store is away, and tells so once an hour", async () => {
    const faulty = new FaultyObjectStore(files.store, { clock: files.clock, seed: 1 });
    const ctx = files.process({ objectStore: faulty });
    const file = await put();
    await queueDelete(ctx, [file], { hint: "test" });
    const begun = files.clock.now();
    faulty.knobs = { credentialOutage: { from: 0, until: begun + 4000 } };
    const sweeps: number[] = [];
    while (files.clock.now() < begun + 5000) {
      await files.sweep(ctx);
      sweeps.push((await files.members()).length);
      await files.clock.advance(300);
    }
    expect(ctx.alerts.identifiers()).toEqual(["files:sweep_postponed", "files:sweep_postponed"]);
    expect(sweeps.at(0)).toBe(1);
    expect(sweeps.at(-1)).toBe(0);
    expect(await files.objects()).toEqual([]);
    expect(await files.beingSwept()).toEqual([]);
  });

  test("waits when the database is away, and deletes no object before its row", async () => {
    const away = {
      ...files.house.sql,
      tables: () => {
        throw new Error("the database is away");
      },
    };
    const file = await put();
    const ctx = files.process({ sql: away as never });
    await queueDelete(ctx, [file], { hint: "test" });
    await files.sweep(ctx);
    expect(await files.objects()).toHaveLength(1);
    expect(await files.members()).toHaveLength(1);
    await files.clock.advance(600);
    await files.sweep(files.process());
    expect(await files.objects()).toEqual([]);
  });

  test("stops at a signal with the rest in its hands, and the next run takes them up first and says so", async () => {
    for (let index = 0; index < 12; index++) await waiting(protectionOf(at(`gone/${index}`)), files.clock.now());
    let asked = 0;
    await files.sweep(files.process(), { shuttingDown: () => ++asked > 2 });
    expect(await files.beingSwept()).toHaveLength(7);
    const next = files.process();
    await files.sweep(next);
    expect(next.alerts.identifiers()).toContain("runners.sweep_partial_file_uploads:recovering");
    expect(await files.beingSwept()).toEqual([]);
    expect(await files.house.redis.commands.exists(keys.sweepLock())).toBe(0);
  });

  test("ends when its time is used up, and starts itself again for the rest", async () => {
    for (let index = 0; index < 12; index++) await waiting(protectionOf(at(`gone/${index}`)), files.clock.now());
    await files.sweep(files.process(), { budgetExhausted: () => true });
    expect(await files.members()).toHaveLength(12);
    await expect.poll(files.queued).toMatchObject([{ name: "runners.sweep_partial_file_uploads" }]);
    await files.house.redis.commands.del(jobKeys.hot(), jobKeys.recurringQueued());
    await files.sweep(files.process());
    expect(await files.members()).toEqual([]);
    expect(await files.queued()).toEqual([]);
  });

  test("two at once: one does the work, the other finds the lock held", async () => {
    for (let index = 0; index < 12; index++) await waiting(protectionOf(at(`gone/${index}`)), files.clock.now());
    const outcomes = await Promise.allSettled([files.sweep(files.process()), files.sweep(files.process())]);
    expect(outcomes.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    expect(outcomes.find((outcome) => outcome.status === "rejected")?.reason).toMatchObject({ code: "lock_held" });
    expect(await files.members()).toEqual([]);
  });

  test("at every death of a sweep, before or after the command: the next one ends its work exactly", async () => {
    let kept: StoredFile;
    const deaths = await dieAtEveryCommand(files.house.server, {
      prepare: async () => {
        await files.reset();
        kept = await put("kept", asPicture);
        const wanted = await put("wanted");
        const now = files.clock.now();
        for (const key of ["orphan/1", "orphan/2"]) {
          await files.store.put(key, Buffer.from("x"), { contentType: "text/plain" });
          await waiting(protectionOf(at(key)), now);
        }
        for (const file of [kept, wanted]) await waiting(deletionOf(file, "test"), now);
        await waiting("senseless", now);
        await waiting(protectionOf(at("later")), now + 10_000);
      },
      life: (redis) => files.sweep(files.process({ redis })),
      afterlife: async () => {
        await files.clock.advance(121);
        await files.sweep(files.process());
        expect((await files.objects()).map(({ key }) => key)).toEqual([kept.key]);
        expect((await files.rows()).map(({ key }) => key)).toEqual([kept.key]);
        expect(await files.members()).toEqual([protectionOf(at("later"))]);
        expect(await files.beingSwept()).toEqual([]);
        expect((await quarantined()).map(({ raw }) => raw)).toEqual(["senseless"]);
        expect(await files.brokenInvariants()).toEqual([]);
      },
    });
    expect(deaths).toBeGreaterThanOrEqual(10);
  });

  test("any mix of members, files and outages: whatever is due ends deleted, kept or set aside", async () => {
    const item = fc.record({
      row: fc.constantFrom("none", "free", "used"),
      object: fc.boolean(),
      expected: fc.boolean(),
      due: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(item, { maxLength: 8 }), fc.nat(), async (items, seed) => {
        await files.reset();
        const survivors = new Set<string>();
        for (const [index, { row, object, expected, due }] of items.entries()) {
          const file =
            row === "none" ? at(`loose/${index}`) : await put(String(index), row === "used" ? asPicture : undefined);
          if (row === "none" && object)
            await files.store.put(file.key, Buffer.from("x"), { contentType: "text/plain" });
          if (row === "used" || (!due && (row === "free" || object))) survivors.add(file.key);
          const member = expected ? deletionOf(file, "test") : protectionOf(file);
          await waiting(member, files.clock.now() + (due ? 0 : 1_000_000));
        }
        const knobs = { failures: { delete: { rate: 0.4, fault: "SlowDown" } }, replyLost: 0.2 } as const;
        const faulty = new FaultyObjectStore(files.store, { clock: files.clock, seed, knobs });
        const due = items.filter((one) => one.due).length;
        for (let round = 0; round < 40 && (await files.members()).length > items.length - due; round++) {
          await files.sweep(files.process({ objectStore: faulty }));
          await files.clock.advance(601);
        }
        expect(new Set((await files.objects()).map(({ key }) => key))).toEqual(survivors);
        expect(await files.members()).toHaveLength(items.length - due);
        expect(await files.beingSwept()).toEqual([]);
      }),
      { numRuns: 10 },
    );
  });
});

describe("deleting one file", () => {
  test("a request to delete is refused for a file in use, one still being uploaded and one in another bucket", async () => {
    const ctx = files.process();
    const used = await put("used", asPicture);
    const free = await put("free");
    await expect(requestDelete(ctx, used, "test")).rejects.toSatisfy(errors.file_in_use.matches);
    expect(await files.rows()).toHaveLength(2);
    await protectUntil(ctx, protectionOf(at("uploading")), files.clock.now() + 600);
    await expect(requestDelete(ctx, at("uploading"), "test")).rejects.toSatisfy(errors.file_in_use.matches);
    await expect(requestDelete(ctx, { bucket: "elsewhere", key: "a" }, "test")).rejects.toSatisfy(
      errors.other_bucket.matches,
    );
    await requestDelete(ctx, free, "test");
    await files.sweep(ctx);
    expect((await files.rows()).map(({ key }) => key)).toEqual([used.key]);
  });

  test("the job deletes row and object by uid or key, refuses a file in use, and warns when it is given nothing", async () => {
    const ctx = files.process();
    const [byUid, byKey, used] = [await put("1"), await put("2"), await put("3", asPicture)];
    await files.store.put("loose", Buffer.from("x"), { contentType: "text/plain" });
    await files.run(ctx, deleteS3FileJob, { uid: byUid.uid });
    await files.run(ctx, deleteS3FileJob, { key: byKey.key });
    await files.run(ctx, deleteS3FileJob, { key: "loose" });
    await files.run(ctx, deleteS3FileJob, { uid: "crl_s3f_unknown" });
    await expect(files.run(ctx, deleteS3FileJob, { uid: used.uid })).rejects.toSatisfy(errors.file_in_use.matches);
    expect((await files.objects()).map(({ key }) => key)).toEqual([used.key]);
    expect(await files.members()).toEqual([]);
    expect(ctx.alerts.recorded).toEqual([]);
    await files.run(ctx, deleteS3FileJob, {});
    expect(ctx.alerts.identifiers()).toEqual(["files:nothing_to_delete"]);
  });

  test("at every death of the job the sweep ends what it began", async () => {
    let file: StoredFile;
    await dieAtEveryCommand(files.house.server, {
      prepare: async () => {
        await files.reset();
        file = await put();
      },
      life: (redis) => files.run(files.process({ redis }), deleteS3FileJob, { uid: file.uid }),
      afterlife: async () => {
        await files.run(files.process(), deleteS3FileJob, { uid: file.uid });
        await files.clock.advance(601);
        await files.sweep(files.process());
        expect(await files.objects()).toEqual([]);
        expect(await files.rows()).toEqual([]);
        expect(await files.members()).toEqual([]);
      },
    });
  });
});

describe("the invariants", () => {
  test("report a member in both sets, an overdue one while a worker lives, and a protection of an old row", async () => {
    const file = await put();
    const now = files.clock.now();
    expect(await files.brokenInvariants()).toEqual([]);
    await waiting(protectionOf(file), now - 901);
    expect(await files.brokenInvariants()).toEqual([]);
    await files.house.redis.commands.zadd(jobKeys.workers(), now, "crl_wk_1");
    expect(await files.brokenInvariants()).toMatchObject([expect.stringContaining("overdue")]);
    await files.house.redis.commands.zrem(jobKeys.workers(), "crl_wk_1");
    await files.house.redis.commands.zadd(keys.sweepPurgatory(), now, protectionOf(file));
    expect(await files.brokenInvariants()).toMatchObject([expect.stringContaining("files:sweep_purgatory")]);
    await files.house.redis.commands.zrem(keys.sweepPurgatory(), protectionOf(file));
    await files.clock.advance(7201);
    expect(await files.brokenInvariants()).toMatchObject([expect.stringContaining("long recorded")]);
  });
});
