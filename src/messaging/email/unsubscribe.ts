import type { Context } from "../../jobs/context.ts";
import { attempt, counterLimit } from "../../mechanisms/rate-limit/index.ts";
import { chooseLists, type HeldEmail, heldBack, unsubscribeEmails, unsuppressEmails } from "../contacts/service.ts";
import { LISTS, type List } from "../email_templates/service.ts";
import { errors } from "./errors.ts";
import { keys, REFUSED_TOKEN_WINDOW } from "./keys.ts";
import { settings } from "./settings.ts";
import { readToken, type UnsubscribeWish } from "./unsubscribe-token.ts";

const refusedTokens = counterLimit({
  reason: "unsubscribe_tokens",
  limit: 20,
  window: REFUSED_TOKEN_WINDOW,
  mode: "fixed",
});

const lists = Object.keys(LISTS) as readonly List[];

/** What a link says. One that means nothing counts against the client: mail providers share addresses, guessers do not. */
export async function wishOf(ctx: Context, token: string, clientAddress: string): Promise<UnsubscribeWish> {
  const wish = readToken(ctx, token);
  if (wish) return wish;
  const counted = await attempt(ctx, [refusedTokens(keys.refusedTokens({ address: networkOf(clientAddress) }))]);
  if (!counted.allowed) throw errors.too_many_bad_tokens({ retryAfter: Math.ceil(counted.retryAfter) });
  throw errors.invalid_unsubscribe_token();
}

/** Who counts as one client: an address of version 4, or the network of 64 bits that one household has of version 6. */
function networkOf(address: string): string {
  const mapped = /^::ffff:(\d+(?:\.\d+){3})$/i.exec(address)?.[1];
  if (mapped !== undefined || !address.includes(":")) return mapped ?? address;
  const [head = "", tail = ""] = address.split("%", 1)[0]!.split("::");
  const groups = (part: string) => part.split(":").filter(Boolean);
  const zeros = Math.max(0, 8 - groups(head).length - groups(tail).length);
  const all = [...groups(head), ...Array<string>(zeros).fill("0"), ...groups(tail)];
  // Colons divide names of keys.
  return all.slice(0, 4).join("-");
}

/** What holds mails back now; `unknown` while the database is away, since whoever wants to leave still may. */
export async function standing(ctx: Context, { email }: UnsubscribeWish): Promise<HeldEmail | undefined | "unknown"> {
  try {
    return await heldBack(ctx, email);
  } catch {
    return "unknown";
  }
}

/** The address gets no more mails of lists, whoever has it. Repeating it changes nothing. */
export async function leave(ctx: Context, { email, emailUid }: UnsubscribeWish): Promise<void> {
  const scope = ctx.config.get(settings.userSuppressionScope);
  await kept(ctx, () => unsubscribeEmails(ctx, [{ email, emailUid, scope }]));
}

/** Takes the wish back. A bounce, a complaint or an administrator's decision stays. */
export async function comeBack(ctx: Context, { email }: UnsubscribeWish): Promise<boolean> {
  return (await kept(ctx, () => unsuppressEmails(ctx, { emails: [email] }, { only: "User" }))).length > 0;
}

/** Stays on the wanted lists and leaves all others; no list at all is the same as leaving. */
export async function choose(
  ctx: Context,
  { email, emailUid }: UnsubscribeWish,
  wanted: readonly string[],
): Promise<void> {
  const unknown = wanted.find((list) => !lists.includes(list as List));
  if (unknown !== undefined) throw errors.unknown_list({ detail: { lists } });
  const scope = ctx.config.get(settings.userSuppressionScope);
  await kept(ctx, () => chooseLists(ctx, { email, emailUid, lists, wanted, scope }));
}

/** A wish that could not be written down must not look as if it had been. */
async function kept<T>(ctx: Context, write: () => Promise<T>): Promise<T> {
  try {
    return await write();
  } catch (cause) {
    ctx.alerts.error(cause, "somebody could not unsubscribe");
    throw errors.unsubscribe_unavailable({ retryAfter: 60, cause });
  }
}
