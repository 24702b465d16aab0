import type { Context } from "../../jobs/context.ts";
import { lookFor, type Sighting, type Station } from "../../mechanisms/message-log/index.ts";
import { keys } from "./keys.ts";

const STATIONS: readonly Station[] = [
  { kind: "list", key: keys.urgent(), state: "waits to be sent, before all others" },
  { kind: "list", key: keys.toSend(), state: "waits to be sent" },
  { kind: "list", key: keys.sendPurgatory(), state: "is being sent" },
  { kind: "zset", key: keys.urgentRetrying(), state: "waits for its next try", score: "due" },
  { kind: "zset", key: keys.retrying(), state: "waits for its next try", score: "due" },
  { kind: "list", key: keys.paused(), state: "is set aside until lists go on" },
  {
    kind: "pending",
    key: keys.pending(),
    state: "is with the provider; its receipt is awaited",
    score: "since",
    hash: (message_id) => keys.pendingItem({ message_id }),
    since: "send_accepted_at",
  },
  { kind: "ids", type: "list", key: keys.event(), state: "has news that waits to be worked in" },
  { kind: "ids", type: "list", key: keys.eventPurgatory(), state: "has news that is being worked in" },
  { kind: "ids", type: "zset", key: keys.early(), state: "has news that came early and waits" },
];

/** Where these mails are now. */
export function whereIs(ctx: Pick<Context, "redis">, uids: readonly string[]): Promise<readonly Sighting[]> {
  return lookFor(ctx, "email", STATIONS, uids);
}
