import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openTestServer, type TestServer } from "../../../test/harness/http.ts";
import type { Jobs } from "../../jobs/context.ts";
import { JobQueue } from "../../jobs/queue.ts";
import { RecurringSet } from "../../jobs/recurring-set.ts";
import { newUid } from "../../kernel/ids.ts";
import { DiskStore } from "../../providers/disk-store.ts";
import { FaultyObjectStore } from "../../sandbox/object-store-faults.ts";
import { signToken } from "../access/service.ts";
import { files } from "./index.ts";
import { recurring, runners } from "./jobs.ts";
import { keys } from "./keys.ts";
import { PART_BODY_LIMIT } from "./multipart.ts";
import { putFile } from "./put.ts";
import { PART_SIZE, type StartedUpload } from "./service.ts";

let server: TestServer;
let store: FaultyObjectStore;
let jobs: Jobs;
const directory = mkdtempSync(join(tmpdir(), "carillon-test-routes-"));

beforeAll(async () => {
  server = await openTestServer({ domains: [files] });
  const { ctx } = server;
  const disk = await DiskStore.open({ directory, bucket: "carillon", clock: ctx.clock });
  store = new FaultyObjectStore(disk, { clock: ctx.clock, seed: 1 });
  jobs = new JobQueue(ctx, { runners, recurring: new RecurringSet(recurring, "UTC") });
  Object.assign(ctx, { jobs, providers: { objectStore: store } });
});
afterAll(async () => {
  await server?.close();
  rmSync(directory, { recursive: true, force: true });
});

const BOUNDARY = "----carillon-test";
function multipart(content: Buffer, field = "file"): { body: Buffer; headers: Record<string, string> } {
  const head = `--${BOUNDARY}\r\ncontent-disposition: form-data; name="${field}"; filename="part"\r\ncontent-type: application/octet-stream\r\n\r\n`;
  return {
    body: Buffer.concat([Buffer.from(head), content, Buffer.from(`\r\n--${BOUNDARY}--\r\n`)]),
    headers: { "content-type": `multipart/form-data; boundary=${BOUNDARY}` },
  };
}

async function begin(fileSize: number): Promise<StartedUpload> {
  const answer = await server.call("POST", "/api/1/admin/file_uploads", {
    token: server.admin,
    body: { name: "song.mp3", content_type: "audio/mpeg", file_size: fileSize },
  });
  expect(answer.statusCode).toBe(201);
  return answer.json() as StartedUpload;
}

const send = (upload: { uid: string; jwt?: string }, part: number | string, content: Buffer, field?: string) =>
  server.call("POST", `/api/1/file_uploads/${upload.uid}/${part}`, { token: upload.jwt, ...multipart(content, field) });

const outcome = (answer: { statusCode: number; json(): { type?: string } }) => [answer.statusCode, answer.json().type];

describe("the upload routes", () => {
  test("an administrator starts an upload, its token sends the parts and sees how far it is", async () => {
    const upload = await begin(PART_SIZE + 100);
    expect(upload.parts).toEqual([
      { start_number: 1, start_byte: 0, number_of_parts: 1, part_size: PART_SIZE },
      { number: 2, start_byte: PART_SIZE, end_byte: PART_SIZE + 100 },
    ]);
    expect(upload.progress?.uid).toMatch(/^crl_jp_/);
    const first = await send(upload, 2, Buffer.alloc(100));
    expect([first.statusCode, first.json()]).toEqual([202, { done: false }]);
    const status = await server.call("GET", `/api/1/file_uploads/${upload.uid}`, { token: upload.jwt });
    expect(status.json()).toMatchObject({ state: "open", parts_total: 2, parts_done: 1, missing: [1] });
    const last = await send(upload, 1, Buffer.alloc(PART_SIZE));
    expect([last.statusCode, last.json()]).toEqual([202, { done: true }]);
    expect(outcome(await send(upload, 1, Buffer.alloc(PART_SIZE)))).toEqual([404, "upload_aborted_or_completed"]);
  });

  test("the token may stand in the address, but the header wins", async () => {
    const upload = await begin(4);
    const path = (jwt: string) => `/api/1/file_uploads/${upload.uid}?jwt=${jwt}`;
    expect((await server.call("GET", path(upload.jwt))).statusCode).toBe(200);
    expect(outcome(await server.call("GET", path(upload.jwt), { token: (await begin(4)).jwt }))).toEqual([
      403,
      "upload_token_refused",
    ]);
    expect((await server.call("GET", path("nonsense"), { token: upload.jwt })).statusCode).toBe(200);
  });

  test("no token is 401, an expired one 401, another upload's or a forged one 403, and nothing is stored", async () => {
    const upload = await begin(4);
    const other = await begin(4);
    const part = Buffer.from("part");
    const { ctx } = server;
    const sign = (audience: "carillon-file-upload" | "carillon-access", expiresIn: number) =>
      signToken(ctx, { audience, subject: upload.uid, expiresIn });
    expect(outcome(await send({ uid: upload.uid }, 1, part))).toEqual([401, "upload_token_missing"]);
    const expired = await sign("carillon-file-upload", -10);
    expect(outcome(await send({ uid: upload.uid, jwt: expired }, 1, part))).toEqual([401, "upload_token_expired"]);
    for (const jwt of [other.jwt, `${upload.jwt}x`, "nonsense", await sign("carillon-access", 60)])
      expect(outcome(await send({ uid: upload.uid, jwt }, 1, part))).toEqual([403, "upload_token_refused"]);
    expect((await send(upload, 1, part)).statusCode).toBe(202);
  });

  test("each wrong part has its own answer", async () => {
    const upload = await begin(PART_SIZE + 4);
    const part = Buffer.from("part");
    expect(outcome(await send(upload, 9, part))).toEqual([404, "part_does_not_exist"]);
    expect(outcome(await send(upload, 2, Buffer.from("longer")))).toEqual([409, "part_does_not_match"]);
    expect((await send(upload, 2, Buffer.from("abc"))).json()).toMatchObject({
      detail: { expected_size: 4, received_size: 3 },
    });
    expect(outcome(await send(upload, 1, Buffer.alloc(PART_SIZE + 1)))).toEqual([409, "part_does_not_match"]);
    expect((await send(upload, 1, Buffer.alloc(PART_BODY_LIMIT))).statusCode).toBe(413);
    expect(outcome(await send(upload, 2, part, "other"))).toEqual([422, "part_missing"]);
    expect((await send(upload, "zero", part)).statusCode).toBe(422);
    expect((await send(upload, 0, part)).statusCode).toBe(422);
    expect((await send(upload, 2, part)).statusCode).toBe(202);
    expect(outcome(await send(upload, 2, part))).toEqual([409, "part_already_uploaded"]);
  });

  test("while the store is away a part answers 503 with Retry-After 5, and can be sent again later", async () => {
    const upload = await begin(4);
    store.knobs = { failures: { put: { rate: 1, fault: "SlowDown" } } };
    const refused = await send(upload, 1, Buffer.from("part"));
    expect(outcome(refused)).toEqual([503, "file_store_unavailable"]);
    expect(refused.headers["retry-after"]).toBe("5");
    store.knobs = {};
    expect((await send(upload, 1, Buffer.from("part"))).json()).toEqual({ done: true });
  });

  test("at most 600 parts of one upload a minute", async () => {
    const upload = await begin(4);
    await server.ctx.redis.commands.set(keys.partAttempts({ file_upload_uid: upload.uid }), 599, "EX", 60);
    expect((await send(upload, 7, Buffer.from("part"))).statusCode).toBe(404);
    const refused = await send(upload, 1, Buffer.from("part"));
    expect(outcome(refused)).toEqual([429, "too_many_parts"]);
    expect(Number(refused.headers["retry-after"])).toBeGreaterThan(0);
    await server.ctx.clock.advance(61);
    expect((await send(upload, 1, Buffer.from("part"))).statusCode).toBe(202);
  });

  test("the bearer of the token can abort, once", async () => {
    const upload = await begin(4);
    const abort = () => server.call("DELETE", `/api/1/file_uploads/${upload.uid}`, { token: upload.jwt });
    expect((await abort()).statusCode).toBe(202);
    expect(outcome(await abort())).toEqual([404, "upload_aborted_or_completed"]);
    expect((await jobs.progress.read(upload.progress!.uid))?.events.at(-1)).toMatchObject({ type: "failed" });
    const status = await server.call("GET", `/api/1/file_uploads/${upload.uid}`, { token: upload.jwt });
    expect(status.json()).toMatchObject({ state: "aborted" });
    const unknown = newUid("s3fu");
    const jwt = await signToken(server.ctx, { audience: "carillon-file-upload", subject: unknown, expiresIn: 60 });
    expect(outcome(await server.call("GET", `/api/1/file_uploads/${unknown}`, { token: jwt }))).toEqual([
      404,
      "upload_not_found",
    ]);
  });

  test("only administrators start uploads, of 1 to 536870912 bytes", async () => {
    const start = (file_size: number, token?: string) =>
      server.call("POST", "/api/1/admin/file_uploads", {
        token,
        body: { name: "a", content_type: "audio/mpeg", file_size },
      });
    expect((await start(1)).statusCode).toBe(401);
    for (const size of [0, 536_870_913, 1.5, -1]) expect((await start(size, server.admin)).statusCode).toBe(422);
    expect((await start(536_870_912, server.admin)).statusCode).toBe(201);
  });
});

describe("the purgatory routes", () => {
  const post = (body: object) => server.call("POST", "/api/1/admin/files/purgatory", { token: server.admin, body });
  const plan = { purpose: "image_export", contentType: "image/webp", keyPrefix: "s3_files/images/exports/x" } as const;

  test("an administrator has a file deleted and sees it wait; a file in use is refused", async () => {
    const { ctx } = server;
    await ctx.redis.commands.del(keys.purgatory());
    const file = await putFile(ctx, Buffer.from("x"), plan);
    await ctx.redis.commands.zadd(keys.purgatory(), 5, "senseless");
    expect((await post({ bucket: file.bucket, key: file.key, hint: "cleaning up" })).statusCode).toBe(202);
    const list = async (query: string) =>
      (await server.call("GET", `/api/1/admin/files/purgatory${query}`, { token: server.admin })).json();
    const first = await list("?limit=1");
    expect(first.items).toMatchObject([{ malformed: "senseless", due_at: 5, key: null }]);
    const second = await list(`?limit=1&cursor=${first.next}`);
    expect(second.items).toMatchObject([
      { bucket: "carillon", key: file.key, expected: true, hint: "cleaning up", due_at: ctx.clock.now() },
    ]);
    const upload = await begin(4);
    await send(upload, 1, Buffer.from("part"));
    const used = await ctx.sql
      .tables<{ s3_files: { key: string; bucket: string } }>()
      .selectFrom("s3_files")
      .selectAll()
      .where("key", "like", `s3_files/uploads/${upload.uid}/%`)
      .executeTakeFirstOrThrow();
    expect(outcome(await post({ bucket: used.bucket, key: used.key, hint: "x" }))).toEqual([409, "file_in_use"]);
    expect(outcome(await post({ bucket: "elsewhere", key: "a", hint: "x" }))).toEqual([422, "other_bucket"]);
    for (const key of ["", "../secrets", "a//b"])
      expect((await post({ bucket: "carillon", key, hint: "x" })).statusCode).toBe(422);
  });
});
