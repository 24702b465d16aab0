import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { dieAtEveryCommand } from "../../../test/harness/chaos.ts";
import type { Context } from "../../jobs/context.ts";
import { newUid } from "../../kernel/ids.ts";
import { readAll } from "../../providers/object-store.ts";
import { FaultyObjectStore } from "../../sandbox/object-store-faults.ts";
import { errors } from "./errors.ts";
import { BouncedInTest, openTestFiles, type TestFiles } from "./files.fixture.ts";
import { deleteFileUpload, storeUploadJob } from "./jobs.ts";
import { PART_SIZE, startUpload, uploadPart } from "./service.ts";

let files: TestFiles;
beforeAll(async () => {
  files = await openTestFiles();
});
beforeEach(() => files.reset());
afterAll(() => files?.close());

describe("putting the parts of an upload together", () => {
  const store = (ctx: Context, uid: string, told = {}) =>
    files.run(ctx, storeUploadJob, { file_upload_uid: uid, name: "Song.MP3", content_type: "audio/mpeg" }, told);
  /** Twelve small parts, so that more are wanted than may be on their way at once. */
  async function completedUpload(ctx: Context): Promise<{ uid: string; content: Buffer }> {
    const { uid } = await startUpload(ctx, {
      fileSize: 12 * PART_SIZE,
      successJob: { runner: storeUploadJob, kwargs: { name: "Song.MP3", content_type: "audio/mpeg" } },
      failureJob: { runner: deleteFileUpload, kwargs: {} },
    });
    await files.house.sql.script("update s3_file_upload_parts set end_byte = start_byte + 3");
    const parts = Array.from({ length: 12 }, (_, index) => Buffer.from([index, index + 1, index + 2]));
    for (const [index, part] of parts.entries()) await uploadPart(ctx, { uploadUid: uid, partNumber: index + 1 }, part);
    return { uid, content: Buffer.concat(parts) };
  }

  test("refuses an upload of which parts are gone already, and leaves no shortened file", async () => {
    const ctx = files.process();
    const { uid } = await completedUpload(ctx);
    await files.house.sql.script("delete from s3_file_upload_parts where part_number <= 10");
    await expect(store(ctx, uid)).rejects.toMatchObject({ code: "upload_aborted_or_completed" });
    expect((await files.rows()).filter(({ key }) => key.includes("/stored/"))).toEqual([]);
  });

  test("keeps their order, has the upload deleted, and tells the file's uid", async () => {
    const ctx = files.process();
    const { uid, content } = await completedUpload(ctx);
    const jobUid = newUid("jp");
    await store(ctx, uid, { jobUid });
    expect((await files.queued()).at(-1)).toMatchObject({
      name: "runners.delete_file_upload",
      kwargs: { file_upload_uid: uid },
    });
    await files.run(ctx, deleteFileUpload, { file_upload_uid: uid });
    const [file, ...others] = await files.rows();
    expect(others).toEqual([]);
    expect(file).toMatchObject({ file_size: 36, content_type: "audio/mpeg" });
    expect(file!.key).toMatch(/\.mp3$/);
    expect((await readAll(await files.store.get(file!.key))).equals(content)).toBe(true);
    expect((await ctx.jobs.progress.read(jobUid))?.events.at(-1)).toMatchObject({
      type: "succeeded",
      message: `stored as ${file!.uid}`,
    });
    expect(await files.mismatches()).toEqual([]);
  });

  test("a second run finds the first one's file, and an upload that is gone is no error", async () => {
    const ctx = files.process();
    const { uid } = await completedUpload(ctx);
    await store(ctx, uid);
    await store(ctx, uid);
    expect((await files.rows()).filter(({ key }) => key.startsWith("s3_files/stored/"))).toHaveLength(1);
    await files.run(ctx, deleteFileUpload, { file_upload_uid: uid });
    await store(ctx, uid);
    expect(await files.rows()).toHaveLength(1);
  });

  test("at every death the file is stored once, and no sweep takes it away later", async () => {
    let uid: string;
    await dieAtEveryCommand(files.house.server, {
      prepare: async () => {
        await files.reset();
        uid = (await completedUpload(files.process())).uid;
      },
      life: (redis) => store(files.process({ redis }), uid),
      afterlife: async () => {
        const ctx = files.process();
        await store(ctx, uid);
        await files.run(ctx, deleteFileUpload, { file_upload_uid: uid });
        await files.clock.advance(3001);
        await files.sweep(ctx);
        expect(await files.rows()).toHaveLength(1);
        expect(await files.mismatches()).toEqual([]);
        expect(await files.members()).toEqual([]);
      },
    });
  });

  test("parts that the store does not show yet fail the run, and the next one finds them", async () => {
    const knobs = { hiddenWhileFresh: 30 };
    const faulty = new FaultyObjectStore(files.store, { clock: files.clock, seed: 1, knobs });
    const ctx = files.process({ objectStore: faulty });
    const { uid } = await completedUpload(ctx);
    await expect(store(ctx, uid)).rejects.toSatisfy(errors.object_not_found.matches);
    await files.clock.advance(60);
    await store(ctx, uid);
    expect((await files.rows()).filter(({ key }) => key.startsWith("s3_files/stored/"))).toHaveLength(1);
  });

  test("gives itself back at a shutdown, and stores when it runs again", async () => {
    const ctx = files.process();
    const { uid } = await completedUpload(ctx);
    await expect(store(ctx, uid, { shuttingDown: () => true })).rejects.toThrow(BouncedInTest);
    await store(ctx, uid);
    expect((await files.rows()).filter(({ key }) => key.startsWith("s3_files/stored/"))).toHaveLength(1);
  });
});
