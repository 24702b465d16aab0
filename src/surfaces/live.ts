import { jobProgress } from "../infrastructure/jobs/service.ts";
import type { Context } from "../jobs/index.ts";
import { LiveGateway } from "../mechanisms/live-channel/index.ts";

/** The websockets of a process, with every kind of channel that clients may follow. */
export function openLiveGateway(ctx: Context): LiveGateway {
  return new LiveGateway(ctx, { kinds: [jobProgress(ctx)] });
}
