import type { Context } from "../../jobs/index.ts";
import { alertKeys, RECENT_ALERTS, type RecentAlert } from "../../mechanisms/alerts/index.ts";

/** The newest alerts of all processes, newest first. One that cannot be read is left out: the audit names it. */
export async function readRecentAlerts({ redis }: Pick<Context, "redis">): Promise<RecentAlert[]> {
  const raws = await redis.commands.lrangeBuffer(redis.topology.key(alertKeys.recent()), 0, RECENT_ALERTS - 1);
  return raws.flatMap((raw) => {
    try {
      return [alertKeys.recent.codec.decode(raw)];
    } catch {
      return [];
    }
  });
}
