import { checkProgressToken } from "../infrastructure/jobs/service.ts";
import { type Context, jobKeys } from "../jobs/index.ts";
import { CarillonError } from "../kernel/errors.ts";
import { type LiveChannelKind, LiveGateway } from "../mechanisms/live-channel/index.ts";

/** The websockets of a process, with every kind of channel that clients may follow. */
export function openLiveGateway(ctx: Context): LiveGateway {
  return new LiveGateway(ctx, { kinds: [jobProgress(ctx)] });
}

/** `job:{job_uid}`: what happens to one job, for the holder of its progress token. */
function jobProgress(ctx: Context): LiveChannelKind {
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
    endsWith: (message) => message === "done",
  };
}
