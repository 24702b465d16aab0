import type { Context } from "../../jobs/context.ts";
import { type KnownMessage, messagesTo } from "../../mechanisms/message-log/index.ts";
import { digester } from "./address-digest.ts";

export interface MessagePage {
  readonly items: readonly KnownMessage[];
  /** Pass it as `before` for older ones. */
  readonly next: number | undefined;
}

/** Messages of all channels to one address, newest first. */
export async function messagesForAddress(
  ctx: Pick<Context, "sql" | "config">,
  address: string,
  options: { readonly limit: number; readonly before?: number | undefined },
): Promise<MessagePage> {
  const items = await messagesTo(ctx, digester(ctx)(address), options);
  return { items, next: items.length < options.limit ? undefined : items.at(-1)?.first_at };
}
