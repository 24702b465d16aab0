import type { Context } from "../../jobs/context.ts";
import { attempt, counterLimit } from "../../mechanisms/rate-limit/index.ts";
import { unsubscribeEmails, unsuppressEmails } from "../contacts/service.ts";
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

/** What a link says. One that means nothing counts against the client: mail providers share addresses, guessers do not. */
export async function wishOf(ctx: Context, token: string, clientAddress: string): Promise<UnsubscribeWish> {
  const wish = readToken(ctx, token);
  if (wish) return wish;
  const counted = await attempt(ctx, [refusedTokens(keys.refusedTokens({ address: clientAddress }))]);
  if (!counted.allowed) throw errors.too_many_bad_tokens({ retryAfter: Math.ceil(counted.retryAfter) });
  throw errors.invalid_unsubscribe_token();
}

/** The address gets no more mails of lists, whoever has it. Repeating it changes nothing. */
export async function leave(ctx: Context, { email, emailUid }: UnsubscribeWish): Promise<void> {
  const scope = ctx.config.get(settings.userSuppressionScope);
  try {
    await unsubscribeEmails(ctx, [{ email, emailUid, scope }]);
  } catch (cause) {
    ctx.alerts.error(cause, "somebody could not unsubscribe");
    throw errors.unsubscribe_unavailable({ retryAfter: 60, cause });
  }
}

/** Takes the wish back. A bounce, a complaint or an administrator's decision stays. */
export async function comeBack(ctx: Context, { email }: UnsubscribeWish): Promise<boolean> {
  return (await unsuppressEmails(ctx, { emails: [email] }, { only: "User" })).length > 0;
}

const escaped = (text: string) => text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);

/** A page with one button. Opening it changes nothing, since scanners open every link of a mail. */
export function leavingPage({ email, list }: UnsubscribeWish): string {
  return page(
    "Leave this list",
    `<p>Send no more mails of the list <b>${escaped(list)}</b>, or of any other, to <b>${escaped(email)}</b>?</p>
<form method="post"><input type="hidden" name="List-Unsubscribe" value="One-Click"><button>Unsubscribe</button></form>`,
  );
}

export const meaninglessPage = (): string =>
  page("This link does not work", "<p>Open the link as it stands in the mail, or copy all of it.</p>");

function page(title: string, body: string): string {
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex"><title>${title}</title>
<style>body{font:1.1rem/1.5 system-ui,sans-serif;max-width:32rem;margin:15vh auto;padding:0 1rem;text-align:center}
button{font:inherit;padding:.6em 1.6em;cursor:pointer}</style></head>
<body><h1>${title}</h1>
${body}
</body></html>
`;
}
