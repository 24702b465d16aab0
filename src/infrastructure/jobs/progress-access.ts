import type { Context } from "../../jobs/index.ts";
import { defineErrors } from "../../kernel/errors.ts";
import { type Audience, signToken, verifyToken } from "../access/service.ts";

export const PROGRESS_AUDIENCE = "carillon-job-progress" satisfies Audience;
const PROGRESS_TOKEN_SECONDS = 1800;

export const progressErrors = defineErrors({
  progress_token_invalid: {
    status: 401,
    doc: "The progress token is missing, malformed or expired.",
    hint: "Use the token that came with the job: `Authorization: Bearer …`.",
  },
  progress_token_foreign: { status: 403, doc: "This progress token belongs to another job." },
  progress_expired: { status: 404, doc: "Nothing is known of this job's progress; it is kept for half an hour." },
});

/** A token that lets its holder watch one job. */
export function progressToken(ctx: Context, jobUid: string, expiresIn = PROGRESS_TOKEN_SECONDS): Promise<string> {
  return signToken(ctx, { audience: PROGRESS_AUDIENCE, subject: jobUid, expiresIn });
}

/** Checks that the token is for this job; answers when it ends. */
export async function checkProgressToken(ctx: Context, jobUid: string, jwt: string | undefined): Promise<number> {
  const token = jwt === undefined ? undefined : await verifyToken(ctx, PROGRESS_AUDIENCE, jwt);
  if (!token?.ok) throw progressErrors.progress_token_invalid();
  if (token.subject !== jobUid) throw progressErrors.progress_token_foreign();
  return token.expiresAt;
}
