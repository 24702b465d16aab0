import { isUtf8 } from "node:buffer";
import type { KernelContext } from "../../kernel/context.ts";
import { randomToken } from "../../kernel/ids.ts";
import type { KeyName } from "../../kernel/keyspace/index.ts";
import { type QuarantinedEntry, quarantineKeys } from "./keys.ts";

/** The text that a removing script appends to the quarantine of `queue`. */
export function quarantineEntry(
  ctx: Pick<KernelContext, "clock">,
  queue: string,
  raw: Buffer | string,
  reason: string,
): string {
  // An id that began with a dash would be an option on the command line.
  const head = { id: `q${randomToken()}`, queue };
  const tail = { reason, quarantined_at: ctx.clock.now() };
  const bytes = typeof raw === "string" ? Buffer.from(raw) : raw;
  const entry: QuarantinedEntry = isUtf8(bytes)
    ? { ...head, raw: bytes.toString("utf8"), ...tail }
    : { ...head, raw_base64: bytes.toString("base64"), ...tail };
  return JSON.stringify(entry);
}

export function quarantineOf(queue: string): KeyName<"list"> {
  return quarantineKeys.entries({ queue });
}

/** Why a codec refused, in a sentence. */
export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Rings once per queue and hour over all processes. An alert that cannot be raised must not stop the work. */
export async function alertQuarantined(
  ctx: Pick<KernelContext, "redis" | "alerts" | "log">,
  queue: string,
  count: number,
  reason: string,
): Promise<void> {
  if (count === 0) return;
  try {
    const flag = ctx.redis.topology.key(quarantineKeys.alerted({ queue }));
    if ((await ctx.redis.commands.set(flag, "1", "PX", 3_600_000, "NX")) !== "OK") return;
    ctx.alerts.warning(`quarantine:${queue}`, `${count} unreadable entries were set aside; the first: ${reason}`);
  } catch (error) {
    ctx.log.warn({ err: error, queue }, "an alert about quarantined entries could not be raised");
  }
}
