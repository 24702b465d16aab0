import { type Context, jobKeys } from "../../jobs/index.ts";
import { CarillonError } from "../../kernel/errors.ts";
import type { LiveChannelKind } from "../../mechanisms/live-channel/index.ts";
import { checkProgressToken } from "./progress-access.ts";

/** The message that follows the last event of a job. */
const DONE = "done";

/** `job:{job_uid}`: what happens to one job, for the holder of its progress token. */
export function jobProgress(ctx: Context): LiveChannelKind {
  return {
    prefix: "job:",
    async authorize(jwt, jobUid) {
      try {
        return { ok: true, expiresAt: await checkProgressToken(ctx, jobUid, jwt) };
      } catch (error) {
        if (!(error instanceof CarillonError)) throw error;
        return { ok: false, code: error.code, message: error.message };
      }
    },
    channelKey: (jobUid) => jobKeys.progress({ job_uid: jobUid }),
    async replay(jobUid, since) {
      const report = await ctx.jobs.progress.read(jobUid, since);
      return { events: report?.events ?? [], ended: report?.done };
    },
    endsWith: (message) => message === DONE,
  };
}
