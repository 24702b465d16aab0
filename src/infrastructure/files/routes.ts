import { z } from "zod";
import { route } from "../../domain.ts";
import type { Context } from "../../jobs/context.ts";
import { newUid } from "../../kernel/ids.ts";
import type { Route } from "../../kernel/route.ts";
import { attempt, counterLimit } from "../../mechanisms/rate-limit/index.ts";
import { isObjectKey } from "../../providers/object-store.ts";
import { bearerOf, verifyToken } from "../access/service.ts";
import { errors } from "./errors.ts";
import { FileMember, keys, PART_LIMIT_WINDOW } from "./keys.ts";
import { PART_BODY_LIMIT, readPartBody } from "./multipart.ts";
import {
  abortUpload,
  deleteFileUpload,
  expectPart,
  listPurgatory,
  readUpload,
  requestDelete,
  startUpload,
  storeUploadJob,
  UPLOAD_AUDIENCE,
  uploadPart,
} from "./service.ts";

const LARGEST_FILE = 536_870_912;
const PARTS_PER_MINUTE = 600;
const RETRY_AFTER = 5;

const partAttempts = counterLimit({
  reason: "too_many_parts",
  limit: PARTS_PER_MINUTE,
  window: PART_LIMIT_WINDOW,
  mode: "fixed",
});

const UploadParams = z.object({ uid: z.string().max(64) });
const JwtQuery = z.object({
  jwt: z.string().max(4096).optional().meta({ description: "The upload's token; the Authorization header wins" }),
});

const Part = z.union([
  z.object({
    start_number: z.number(),
    start_byte: z.number(),
    number_of_parts: z.number(),
    part_size: z.number(),
  }),
  z.object({ number: z.number(), start_byte: z.number(), end_byte: z.number().meta({ description: "Exclusive" }) }),
]);

/** Only the bearer of this upload's own token may touch it. */
async function requireUploadToken(
  ctx: Context,
  request: {
    readonly params: { uid: string };
    readonly query: { jwt?: string };
    readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  },
): Promise<void> {
  const { authorization } = request.headers;
  const jwt = bearerOf(Array.isArray(authorization) ? authorization[0] : authorization) ?? request.query.jwt;
  if (!jwt) throw errors.upload_token_missing();
  const verified = await verifyToken(ctx, UPLOAD_AUDIENCE, jwt);
  if (!verified.ok) throw verified.reason === "expired" ? errors.upload_token_expired() : errors.upload_token_refused();
  if (verified.subject !== request.params.uid) throw errors.upload_token_refused();
}

export const routes: readonly Route<Context>[] = [
  route({
    method: "POST",
    path: "/api/1/file_uploads/{uid}/{part}",
    access: "token",
    summary: "Upload one part of a file",
    description: "multipart/form-data with one field named file. Parts may come in any order and at the same time.",
    schemas: {
      params: UploadParams.extend({ part: z.coerce.number().int().min(1).max(2_147_483_647) }),
      query: JwtQuery,
    },
    responses: { 202: z.object({ done: z.boolean().meta({ description: "This part completed the upload" }) }) },
    bodyLimit: PART_BODY_LIMIT,
    consumes: "multipart",
    async handle(ctx, request) {
      await requireUploadToken(ctx, request);
      const { uid, part } = request.params;
      const limited = await attempt(ctx, [partAttempts(keys.partAttempts({ file_upload_uid: uid }))]);
      if (!limited.allowed) throw errors.too_many_parts({ retryAfter: Math.ceil(limited.retryAfter) });
      const plan = { uploadUid: uid, partNumber: part };
      const expected = await expectPart(ctx, plan);
      const content = await readPartBody(request.raw);
      try {
        return { status: 202, body: await uploadPart(ctx, plan, content, expected) };
      } catch (error) {
        if (errors.file_store_unavailable.matches(error) || errors.swept_during_upload.matches(error))
          throw errors.file_store_unavailable({ retryAfter: RETRY_AFTER, cause: error });
        throw error;
      }
    },
  }),
  route({
    method: "GET",
    path: "/api/1/file_uploads/{uid}",
    access: "token",
    summary: "See how far an upload is",
    description: "Lists the first hundred missing parts, so that a client can go on after an interruption.",
    schemas: { params: UploadParams, query: JwtQuery },
    responses: {
      200: z.object({
        state: z.enum(["open", "completed", "expired", "aborted"]),
        parts_total: z.number(),
        parts_done: z.number(),
        missing: z.array(z.number()),
        expires_at: z.number(),
      }),
    },
    async handle(ctx, request) {
      await requireUploadToken(ctx, request);
      return { status: 200, body: await readUpload(ctx, request.params.uid) };
    },
  }),
  route({
    method: "DELETE",
    path: "/api/1/file_uploads/{uid}",
    access: "token",
    summary: "Abort an upload",
    schemas: { params: UploadParams, query: JwtQuery },
    async handle(ctx, request) {
      await requireUploadToken(ctx, request);
      await abortUpload(ctx, request.params.uid);
      return { status: 202, body: {} };
    },
  }),
  route({
    method: "POST",
    path: "/api/1/admin/file_uploads",
    access: "admin",
    summary: "Start the upload of a file",
    schemas: {
      body: z.strictObject({
        name: z.string().trim().min(1).max(255),
        content_type: z.string().regex(/^[\w.+-]{1,100}\/[\w.+-]{1,100}$/),
        file_size: z.number().int().min(1).max(LARGEST_FILE).meta({ description: "Bytes" }),
      }),
    },
    responses: {
      201: z.object({
        uid: z.string(),
        jwt: z.string(),
        parts: z.array(Part),
        progress: z.object({ uid: z.string(), jwt: z.string() }),
      }),
    },
    handle: async (ctx, { body }) => ({
      status: 201,
      body: await startUpload(ctx, {
        fileSize: body.file_size,
        successJob: { runner: storeUploadJob, kwargs: { name: body.name, content_type: body.content_type } },
        failureJob: { runner: deleteFileUpload, kwargs: {} },
        jobUid: newUid("jp"),
      }),
    }),
  }),
  route({
    method: "GET",
    path: "/api/1/admin/files/purgatory",
    access: "admin",
    summary: "List the objects that wait for deletion, the earliest first",
    schemas: {
      query: z.object({
        limit: z.coerce.number().int().min(1).max(100).default(100),
        cursor: z
          .string()
          .regex(/^\d{1,12}(\.\d{1,9})?:\d{1,9}$/)
          .optional(),
      }),
    },
    responses: {
      200: z.object({
        items: z.array(
          z.object({
            bucket: z.string().nullable(),
            key: z.string().nullable(),
            expected: z.boolean(),
            hint: z.string().nullable(),
            due_at: z.number(),
            malformed: z.string().nullable().meta({ description: "The member, when it is not what it should be" }),
          }),
        ),
        next: z.string().nullable(),
      }),
    },
    async handle(ctx, { query }) {
      const [due, skip] = (query.cursor ?? "").split(":").map(Number);
      const cursor = query.cursor === undefined ? undefined : { due: due!, skip: skip! };
      const { items, next } = await listPurgatory(ctx, { limit: query.limit, cursor });
      return {
        status: 200,
        body: { items: items.map(shown), next: next ? `${next.due}:${next.skip}` : null },
      };
    },
  }),
  route({
    method: "POST",
    path: "/api/1/admin/files/purgatory",
    access: "admin",
    summary: "Have a file deleted now",
    schemas: {
      body: z.strictObject({
        bucket: z.string().min(1).max(63),
        key: z.string().refine(isObjectKey, "not a key that an object can have"),
        hint: z.string().min(1).max(200),
      }),
    },
    async handle(ctx, { body }) {
      await requestDelete(ctx, { bucket: body.bucket, key: body.key }, body.hint);
      return { status: 202, body: {} };
    },
  }),
];

function shown({ member, due_at }: { member: string; due_at: number }) {
  const parsed = FileMember.safeParse(parseOrUndefined(member));
  const facts = parsed.success ? parsed.data : undefined;
  return {
    bucket: facts?.bucket ?? null,
    key: facts?.key ?? null,
    expected: facts?.expected ?? false,
    hint: facts?.hint ?? null,
    due_at,
    malformed: facts ? null : member,
  };
}

function parseOrUndefined(member: string): unknown {
  try {
    return JSON.parse(member);
  } catch {
    return undefined;
  }
}
