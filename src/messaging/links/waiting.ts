import type { Context } from "../../jobs/context.ts";
import { type BufferedClick, bufferedClick, type Link, linkHash } from "./entries.ts";
import { keys } from "./keys.ts";
import type { ClickRow } from "./rows.ts";
import { readLinks } from "./scripts.ts";

/** A link in the buffer with its uses. `link` is absent when there is none, or none that can be read. */
export interface WaitingLink {
  readonly code: string;
  readonly link: Link | undefined;
  readonly clicks: readonly ClickRow[];
  /** How many uses there are, those that cannot be read included. */
  readonly length: number;
}

export function fieldsOf(flat: readonly string[]): Readonly<Record<string, Buffer>> {
  const raw: Record<string, Buffer> = {};
  for (let at = 0; at < flat.length; at += 2) raw[flat[at]!] = Buffer.from(flat[at + 1]!);
  return raw;
}

function readable<T>(ctx: Pick<Context, "alerts">, read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    ctx.alerts.warning("touch_links:unreadable", `a waiting link or click cannot be read: ${String(error)}`);
    return undefined;
  }
}

/** Reads what waits under these codes with one call. */
export async function readWaiting(
  ctx: Pick<Context, "redis" | "alerts">,
  codes: readonly string[],
): Promise<readonly WaitingLink[]> {
  if (codes.length === 0) return [];
  const found = await ctx.redis.run(readLinks, [keys.buffer()], [...codes]);
  return found.map(({ link: flat, clicks: raws }, at) => {
    const code = codes[at]!;
    const link = flat.length === 0 ? undefined : readable(ctx, () => linkHash.decode(fieldsOf(flat)) as Link);
    const clicks = raws.flatMap(
      (raw) => readable<BufferedClick>(ctx, () => bufferedClick.decode(Buffer.from(raw))) ?? [],
    );
    const parents = new Set(clicks.map(({ parent_uid }) => parent_uid));
    return {
      code,
      link,
      clicks: clicks.map((click) => ({ ...click, link_code: code, hasChild: parents.has(click.uid) })),
      length: raws.length,
    };
  });
}
