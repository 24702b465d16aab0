import type { Context } from "../../jobs/context.ts";
import { lookFor, type Sighting, type Station } from "../../mechanisms/message-log/index.ts";
import { keys } from "./keys.ts";

const STATIONS: readonly Station[] = [
  { kind: "list", key: keys.toSend(), state: "waits to be sent" },
  { kind: "list", key: keys.sendPurgatory(), state: "is being sent" },
  { kind: "zset", key: keys.retrying(), state: "waits for its next try", score: "due" },
  { kind: "zset", key: keys.cold(), state: "is with the provider; its receipt cannot be there yet", score: "since" },
  { kind: "list", key: keys.hot(), state: "is with the provider; its receipt is to be asked for" },
  { kind: "list", key: keys.ticketPurgatory(), state: "is with the provider; its receipt is being asked for" },
];

/** Where these notifications are now. */
export function whereIs(ctx: Pick<Context, "redis">, uids: readonly string[]): Promise<readonly Sighting[]> {
  return lookFor(ctx, "push", STATIONS, uids);
}
