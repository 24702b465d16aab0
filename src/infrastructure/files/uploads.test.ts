import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { dieAtEveryCommand } from "../../../test/harness/chaos.ts";
import type { Context } from "../../jobs/context.ts";
import { newUid } from "../../kernel/ids.ts";
import { FaultyObjectStore } from "../../sandbox/object-store-faults.ts";
import { verifyToken } from "../access/service.ts";
import { errors } from "./errors.ts";
import { BouncedInTest, neverRun, openTestFiles, type TestFiles } from "./files.fixture.ts";
import { deleteFileUpload, recurring, sweepIncompleteFileUploads } from "./jobs.ts";
import { abortUpload, PART_SIZE, partRanges, readUpload, startUpload, uploadPart } from "./service.ts";
import type { FileTables } from "./tables.ts";

const kwargs = z.strictObject({ file_upload_uid: z.string(), course: z.string().optional() });
const succeed = neverRun("runners.test.uploaded", kwargs);
const fail = neverRun("runners.test.not_uploaded", kwargs);

let files: TestFiles;
beforeAll(async () => {
  files = await openTestFiles({ jobs: [succeed, fail] });
});
beforeEach(() => files.reset());
afterAll(() => files?.close());

const start = (ctx: Context, fileSize: number, jobUid?: string) =>
  startUpload(ctx, {
    fileSize,
    successJob: { runner: succeed, kwargs: { course: "c" } },
    failureJob: { runner: fail, kwargs: {} },
    jobUid,
  });
const bytes = (size: number, value = 1) => Buffer.alloc(size, value);
const send = (ctx: Context, uid: string, partNumber: number, content: Buffer) =>
  uploadPart(ctx, { uploadUid: uid, partNumber }, content);
const sweepIncomplete = (ctx: Context) => files.run(ctx, sweepIncompleteFileUploads, {});
const uploadRow = (uid: string) =>
  files.house.sql
    .tables<FileTables>()
    .selectFrom("s3_file_uploads")
    .selectAll()
    .where("uid", "=", uid)
    .executeTakeFirst();
/** The same process, but nothing can be queued: as if it had died just before. */
const withoutQueue = (ctx: Context): Context => {
  const jobs = Object.create(ctx.jobs, {
    enqueueNamed: { value: () => Promise.reject(new Error("the process died here")) },
    progress: { value: ctx.jobs.progress },
  });
  return Object.defineProperties({}, { ...Object.getOwnPropertyDescriptors(ctx), jobs: { value: jobs } }) as Context;
};

describe("starting an upload", () => {
  test("cuts a file into parts of a mebibyte and a rest, told compressed", () => {
    expect(partRanges(2_621_440)).toEqual([
      { start_number: 1, start_byte: 0, number_of_parts: 2, part_size: 1_048_576 },
      { number: 3, start_byte: 2_097_152, end_byte: 2_621_440 },
    ]);
    expect(partRanges(PART_SIZE)).toEqual([
      { start_number: 1, start_byte: 0, number_of_parts: 1, part_size: 1_048_576 },
    ]);
    expect(partRanges(1)).toEqual([{ number: 1, start_byte: 0, end_byte: 1 }]);
  });

  test("gives a token for the upload that ends with it, and one for its progress that lives 1800 s longer", async () => {
    const ctx = files.process();
    const jobUid = newUid("jp");
    const { uid, jwt, progress } = await start(ctx, 10, jobUid);
    const now = ctx.clock.now();
    expect(await verifyToken(ctx, "carillon-file-upload", jwt)).toMatchObject({
      ok: true,
      subject: uid,
      expiresAt: now + 3600,
    });
    expect(await verifyToken(ctx, "carillon-job-progress", progress!.jwt)).toMatchObject({
      ok: true,
      subject: jobUid,
      expiresAt: now + 5400,
    });
    expect((await ctx.jobs.progress.read(jobUid))?.events).toMatchObject([
      { type: "queued", message: "waiting for the file to be uploaded" },
    ]);
  });

  test("writes one row for every part, also for hundreds", async () => {
    const { uid } = await start(files.process(), 512 * PART_SIZE);
    const status = await readUpload(files.process(), uid);
    expect(status).toMatchObject({ state: "open", parts_total: 512, parts_done: 0 });
    expect(status.missing).toEqual(Array.from({ length: 100 }, (_, index) => index + 1));
  });

  test("refuses jobs that could never be queued, while the caller is still there", async () => {
    const ctx = files.process();
    const wrong = { runner: succeed, kwargs: { course: 7 } };
    const right = { runner: fail, kwargs: {} };
    await expect(startUpload(ctx, { fileSize: 1, successJob: wrong, failureJob: right })).rejects.toThrow(TypeError);
    await expect(start(ctx, 0)).rejects.toThrow(TypeError);
  });
});

describe("uploading parts", () => {
  test("parts 3, 1, 2 of 2621440 bytes: done with the last, one success job, and no part is taken again", async () => {
    const ctx = files.process();
    const jobUid = newUid("jp");
    const { uid } = await start(ctx, 2_621_440, jobUid);
    expect(await send(ctx, uid, 3, bytes(524_288))).toEqual({ done: false });
    expect(await send(ctx, uid, 1, bytes(PART_SIZE))).toEqual({ done: false });
    expect(await readUpload(ctx, uid)).toMatchObject({ state: "open", parts_total: 3, parts_done: 2, missing: [2] });
    expect(await files.queued()).toEqual([]);
    expect(await send(ctx, uid, 2, bytes(PART_SIZE))).toEqual({ done: true });
    expect(await files.queued()).toMatchObject([
      { name: "runners.test.uploaded", kwargs: { file_upload_uid: uid, course: "c" }, job_uid: jobUid },
    ]);
    expect(await uploadRow(uid)).toMatchObject({ outcome: "completed", job_enqueued_at: ctx.clock.now() });
    await expect(send(ctx, uid, 2, bytes(PART_SIZE))).rejects.toSatisfy(errors.upload_aborted_or_completed.matches);
    expect((await files.objects()).map(({ key }) => key.split("/").slice(0, -1).join("/"))).toEqual(
      [1, 2, 3].map((part) => `s3_files/uploads/${uid}/${part}`),
    );
    expect(await files.mismatches()).toEqual([]);
    expect(await files.members()).toEqual([]);
  });

  test("a part of another size, an unknown part and a part that is there are refused without a trace", async () => {
    const ctx = files.process();
    const { uid } = await start(ctx, PART_SIZE + 10);
    await expect(send(ctx, uid, 2, bytes(11))).rejects.toMatchObject({
      code: "part_does_not_match",
      detail: { expected_size: 10, received_size: 11 },
    });
    await expect(send(ctx, uid, 2, bytes(9))).rejects.toSatisfy(errors.part_does_not_match.matches);
    await expect(send(ctx, uid, 3, bytes(10))).rejects.toSatisfy(errors.part_does_not_exist.matches);
    await send(ctx, uid, 2, bytes(10));
    await expect(send(ctx, uid, 2, bytes(10))).rejects.toSatisfy(errors.part_already_uploaded.matches);
    await expect(send(ctx, newUid("s3fu"), 1, bytes(10))).rejects.toSatisfy(errors.upload_aborted_or_completed.matches);
    expect(await files.objects()).toHaveLength(1);
  });

  test("the same part twice at once: one is taken, the other refused and its object removed", async () => {
    const ctx = files.process();
    const { uid } = await start(ctx, 10 + PART_SIZE);
    const outcomes = await Promise.allSettled([1, 2, 3].map((value) => send(ctx, uid, 2, bytes(10, value))));
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    for (const outcome of outcomes)
      if (outcome.status === "rejected") expect(outcome.reason).toSatisfy(errors.part_already_uploaded.matches);
    expect(await files.objects()).toHaveLength(1);
    expect(await files.mismatches()).toEqual([]);
    expect(await files.members()).toEqual([]);
  });

  test("all parts at once: exactly one of them completes the upload", async () => {
    const ctx = files.process();
    const { uid } = await start(ctx, 3 * PART_SIZE);
    const outcomes = await Promise.all([1, 2, 3].map((part) => send(ctx, uid, part, bytes(PART_SIZE))));
    expect(outcomes.filter(({ done }) => done)).toHaveLength(1);
    expect(await files.queued()).toHaveLength(1);
  });

  test("a store that is away refuses the part, and its protection stays until it is swept", async () => {
    const faulty = new FaultyObjectStore(files.store, {
      clock: files.clock,
      seed: 1,
      knobs: { replyLost: 1 },
    });
    const ctx = files.process({ objectStore: faulty });
    const { uid } = await start(ctx, 10);
    await expect(send(ctx, uid, 1, bytes(10))).rejects.toSatisfy(errors.file_store_unavailable.matches);
    expect(await files.members()).toHaveLength(1);
    expect(await files.objects()).toHaveLength(1);
    faulty.knobs = {};
    expect(await send(ctx, uid, 1, bytes(10))).toEqual({ done: true });
    await files.clock.advance(601);
    await files.sweep(ctx);
    expect(await files.mismatches()).toEqual([]);
    expect(await files.objects()).toHaveLength(1);
  });

  test("at every death during the last part: the upload still completes, and its job is queued", async () => {
    let uid: string;
    await dieAtEveryCommand(files.house.server, {
      prepare: async () => {
        await files.reset();
        uid = (await start(files.process(), 10)).uid;
      },
      life: async (redis) => {
        await send(files.process({ redis }), uid, 1, bytes(10));
      },
      afterlife: async () => {
        const ctx = files.process();
        if ((await readUpload(ctx, uid)).state === "open") await send(ctx, uid, 1, bytes(10));
        await files.clock.advance(601);
        await sweepIncomplete(ctx);
        await files.sweep(ctx);
        expect(await uploadRow(uid)).toMatchObject({ outcome: "completed", job_enqueued_at: expect.any(Number) });
        const queued = await files.queued();
        expect(queued.length).toBeGreaterThanOrEqual(1);
        expect(queued.length).toBeLessThanOrEqual(2);
        expect(queued[0]).toMatchObject({ name: "runners.test.uploaded", kwargs: { file_upload_uid: uid } });
        expect(await files.mismatches()).toEqual([]);
        expect(await files.brokenInvariants()).toEqual([]);
      },
    });
  });
});

describe("uploads that do not go to their end", () => {
  test("a death between the last commit and the queue: the sweep queues the success job once", async () => {
    const ctx = files.process();
    const { uid } = await start(ctx, 10);
    expect(await send(withoutQueue(ctx), uid, 1, bytes(10))).toEqual({ done: true });
    expect(await files.queued()).toEqual([]);
    await sweepIncomplete(ctx);
    expect(await files.queued()).toEqual([]);
    await files.clock.advance(15 * 60);
    await sweepIncomplete(ctx);
    await files.clock.advance(15 * 60);
    await sweepIncomplete(ctx);
    expect(await files.queued()).toMatchObject([{ name: "runners.test.uploaded", kwargs: { file_upload_uid: uid } }]);
  });

  test("an upload never finished: its failure job is queued exactly once, and its progress ends with failed", async () => {
    const ctx = files.process();
    const jobUid = newUid("jp");
    const { uid } = await start(ctx, 2 * PART_SIZE, jobUid);
    await files.clock.advance(3000);
    await send(ctx, uid, 1, bytes(PART_SIZE));
    await sweepIncomplete(ctx);
    expect(await files.queued()).toEqual([]);
    await files.clock.advance(601);
    for (let round = 0; round < 3; round++) {
      await sweepIncomplete(files.process());
      await files.clock.advance(100);
    }
    expect(await files.queued()).toMatchObject([
      { name: "runners.test.not_uploaded", kwargs: { file_upload_uid: uid } },
    ]);
    expect((await files.queued())[0]).not.toHaveProperty("job_uid");
    const progress = await ctx.jobs.progress.read(jobUid);
    expect(progress).toMatchObject({ done: true });
    expect(progress?.events.at(-1)).toMatchObject({ type: "failed" });
    await expect(send(ctx, uid, 2, bytes(PART_SIZE))).rejects.toSatisfy(errors.upload_aborted_or_completed.matches);
    expect(await readUpload(ctx, uid)).toMatchObject({ state: "expired" });
  });

  test("an aborted upload queues its failure job, takes no part any more and cannot be aborted again", async () => {
    const ctx = files.process();
    const jobUid = newUid("jp");
    const { uid } = await start(ctx, 10, jobUid);
    await abortUpload(ctx, uid);
    expect(await files.queued()).toMatchObject([
      { name: "runners.test.not_uploaded", kwargs: { file_upload_uid: uid } },
    ]);
    expect((await ctx.jobs.progress.read(jobUid))?.events.at(-1)).toMatchObject({ type: "failed" });
    await expect(send(ctx, uid, 1, bytes(10))).rejects.toSatisfy(errors.upload_aborted_or_completed.matches);
    await expect(abortUpload(ctx, uid)).rejects.toSatisfy(errors.upload_aborted_or_completed.matches);
  });

  test("a death after an abort: the sweep tells and queues what is missing, the failure said once", async () => {
    const ctx = files.process();
    const jobUid = newUid("jp");
    const { uid } = await start(ctx, 10, jobUid);
    await abortUpload(withoutQueue(ctx), uid);
    await files.clock.advance(61);
    await sweepIncomplete(ctx);
    expect(await files.queued()).toMatchObject([{ name: "runners.test.not_uploaded" }]);
    const events = (await ctx.jobs.progress.read(jobUid))?.events ?? [];
    expect(events.filter(({ type }) => type === "failed")).toHaveLength(1);
  });

  test("more uploads than one batch, and one whose job no longer exists does not stand in the way", async () => {
    const ctx = files.process();
    for (let index = 0; index < 23; index++) await start(ctx, 10);
    await files.house.sql.script(
      "update s3_file_uploads set failure_job_name = 'runners.gone' where id = (select min(id) from s3_file_uploads)",
    );
    await files.clock.advance(3601);
    await sweepIncomplete(ctx);
    expect(await files.queued()).toHaveLength(22);
    expect(ctx.alerts.recorded.filter(({ level }) => level === "error")).not.toEqual([]);
  });

  test("at every death of the incomplete sweep: each failure job is queued, at most twice", async () => {
    await dieAtEveryCommand(files.house.server, {
      prepare: async () => {
        await files.reset();
        const ctx = files.process();
        for (let index = 0; index < 3; index++) await start(ctx, 10, newUid("jp"));
        await files.clock.advance(3601);
      },
      life: (redis) => sweepIncomplete(files.process({ redis })),
      afterlife: async () => {
        await files.clock.advance(181);
        await sweepIncomplete(files.process());
        const uids = (await files.queued()).map((job) => job.kwargs.file_upload_uid);
        expect(new Set(uids).size).toBe(3);
        expect(uids.length).toBeLessThanOrEqual(4);
      },
    });
  });

  test("an upload that its job never removed is removed after a day, with a warning", async () => {
    const ctx = files.process();
    const { uid } = await start(ctx, 10);
    await send(ctx, uid, 1, bytes(10));
    await files.clock.advance(86_401);
    await sweepIncomplete(ctx);
    expect(ctx.alerts.identifiers()).toEqual(["files:upload_left_over"]);
    expect((await files.queued()).map(({ name }) => name)).toEqual([
      "runners.test.uploaded",
      "runners.delete_file_upload",
    ]);
    await files.run(ctx, deleteFileUpload, { file_upload_uid: uid });
    expect(await uploadRow(uid)).toBeUndefined();
    expect(await files.objects()).toEqual([]);
    expect(await files.rows()).toEqual([]);
    expect(await files.members()).toEqual([]);
    await files.run(ctx, deleteFileUpload, { file_upload_uid: uid });
  });

  test("deleting an upload gives itself back at a shutdown and goes on later", async () => {
    const ctx = files.process();
    const { uid } = await start(ctx, 2 * PART_SIZE);
    for (const part of [1, 2]) await send(ctx, uid, part, bytes(PART_SIZE));
    await expect(
      files.run(ctx, deleteFileUpload, { file_upload_uid: uid }, { shuttingDown: () => true }),
    ).rejects.toThrow(BouncedInTest);
    await files.run(ctx, deleteFileUpload, { file_upload_uid: uid });
    expect(await files.objects()).toEqual([]);
  });
});

test("the sweeps recur every 5 and every 15 minutes", () => {
  expect(recurring.map(({ runner, schedule }) => [runner.name, schedule.minutes?.length, schedule.seconds])).toEqual([
    ["runners.sweep_partial_file_uploads", 12, [30]],
    ["runners.sweep_incomplete_file_uploads", 4, [0]],
  ]);
});
