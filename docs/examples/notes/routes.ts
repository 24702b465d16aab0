import { z } from "zod";
import { route } from "../../../src/domain.ts";
import type { Context } from "../../../src/jobs/context.ts";
import type { Caller, Route } from "../../../src/kernel/route.ts";
import { getUser, errors as userErrors } from "../../../src/people/users/service.ts";
import { keepNote, listNotes, type Note, writeNote } from "./service.ts";

const Uid = z.string().regex(/^crl_note_[\w-]{22}$/);
const ExpiresIn = z.number().int().min(60).max(31_536_000).default(86_400).meta({ description: "Seconds" });
const NoteBody = z.object({ uid: Uid, text: z.string(), created_at: z.number(), expires_at: z.number() });

/** What leaves the server of a row; numeric ids stay. */
function shown({ uid, text, created_at, expires_at }: Note): z.input<typeof NoteBody> {
  return { uid, text, created_at, expires_at };
}

async function idOf(ctx: Context, caller: Caller): Promise<number> {
  const user = await getUser(ctx, caller.sub ?? "");
  if (!user) throw userErrors.user_not_found();
  return user.id;
}

export const routes: readonly Route<Context>[] = [
  route({
    method: "POST",
    path: "/api/1/users/me/notes",
    access: "user",
    summary: "Write a note to yourself",
    schemas: { body: z.strictObject({ text: z.string().trim().min(1).max(2000), expires_in: ExpiresIn }) },
    responses: { 201: NoteBody },
    handle: async (ctx, { caller, body }) => {
      const userId = await idOf(ctx, caller);
      return {
        status: 201,
        body: shown(await writeNote(ctx, { userId, text: body.text, expiresIn: body.expires_in })),
      };
    },
  }),
  route({
    method: "GET",
    path: "/api/1/users/me/notes",
    access: "user",
    summary: "List your notes, the newest first",
    schemas: {
      query: z.object({ before: Uid.optional(), limit: z.coerce.number().int().min(1).max(100).default(20) }),
    },
    responses: { 200: z.object({ items: z.array(NoteBody), next: Uid.nullable() }) },
    handle: async (ctx, { caller, query }) => {
      const { notes, next } = await listNotes(ctx, await idOf(ctx, caller), query);
      return { status: 200, body: { items: notes.map(shown), next: next ?? null } };
    },
  }),
  route({
    method: "POST",
    path: "/api/1/users/me/notes/{uid}/keep",
    access: "user",
    summary: "Let a note live longer",
    schemas: { params: z.object({ uid: Uid }), body: z.strictObject({ expires_in: ExpiresIn }).prefault({}) },
    responses: { 200: NoteBody },
    handle: async (ctx, { caller, params, body }) => {
      const kept = await keepNote(ctx, await idOf(ctx, caller), params.uid, body.expires_in);
      return { status: 200, body: shown(kept) };
    },
  }),
];
