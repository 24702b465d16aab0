import { z } from "zod";
import { route } from "../../domain.ts";
import type { Context } from "../../jobs/context.ts";
import { CarillonError } from "../../kernel/errors.ts";
import { pageHeaders } from "../../kernel/page.ts";
import type { Route, RouteReply } from "../../kernel/route.ts";
import { brandOf, LISTS } from "../email_templates/service.ts";
import { errors } from "./errors.ts";
import { choose, comeBack, leave, standing, wishOf } from "./unsubscribe.ts";
import { choicePage, type Happened, wordsPage } from "./unsubscribe-page.ts";
import { type UnsubscribeWish, unsubscribePath } from "./unsubscribe-token.ts";

const params = z.object({ token: z.string().max(2_048) });
const BODY_LIMIT = 16_384;
const PLAIN = { "content-type": "text/plain; charset=utf-8", "cache-control": "no-store", vary: "accept" };
const offers = Object.entries(LISTS).map(([slug, { title, doc }]) => ({ slug, title, doc }));

interface Asked {
  readonly params: { readonly token: string };
  readonly caller: { readonly address: string };
  readonly headers: { readonly accept?: string };
}

/** Browsers ask for a page; the mailbox that sends the one click does not, and gets one line of text. */
const wantsPage = ({ headers }: Asked) => headers.accept?.includes("text/html") ?? false;

async function pageOf(ctx: Context, wish: UnsubscribeWish, token: string, happened?: Happened): Promise<RouteReply> {
  const brand = brandOf(ctx.config);
  const { email, list } = wish;
  const facts = {
    brand,
    email,
    list,
    lists: offers,
    path: unsubscribePath(ctx, token),
    held: await standing(ctx, wish),
  };
  return { status: 200, headers: pageHeaders(brand), body: choicePage(facts, happened) };
}

const TROUBLES = [
  [
    errors.invalid_unsubscribe_token,
    "This link does not work",
    "Open the link as it stands in the mail, or copy all of it into the browser.",
  ],
  [errors.too_many_bad_tokens, "Too many tries", "Please wait a minute, and then open the link from the mail again."],
  [
    errors.unsubscribe_unavailable,
    "That did not work just now",
    "Your wish could not be written down. Please try again in a minute.",
  ],
] as const;

/** Refusals as pages, for people; programs get them as everywhere else. */
async function forPeople(ctx: Context, page: boolean, answer: () => Promise<RouteReply>): Promise<RouteReply> {
  try {
    return await answer();
  } catch (error) {
    const trouble = TROUBLES.find(([declared]) => declared.matches(error));
    if (!page || !trouble || !(error instanceof CarillonError)) throw error;
    const brand = brandOf(ctx.config);
    const retry: Record<string, string> =
      error.retryAfter === undefined ? {} : { "retry-after": String(error.retryAfter) };
    return {
      status: error.status,
      headers: { ...pageHeaders(brand), ...retry },
      body: wordsPage(brand, trouble[1], trouble[2]),
    };
  }
}

/** A form that changes something: a page for browsers, one line for everybody else. */
function change(
  ctx: Context,
  asked: Asked,
  act: (wish: UnsubscribeWish) => Promise<{ readonly happened?: Happened; readonly line: string }>,
): Promise<RouteReply> {
  return forPeople(ctx, wantsPage(asked), async () => {
    const { token } = asked.params;
    const wish = await wishOf(ctx, token, asked.caller.address);
    const { happened, line } = await act(wish);
    if (wantsPage(asked)) return pageOf(ctx, wish, token, happened);
    return { status: 200, headers: PLAIN, body: `${line}\n` };
  });
}

export const unsubscribeRoutes: readonly Route<Context>[] = [
  route({
    method: "GET",
    path: "/api/1/emails/unsubscribe/{token}",
    access: "token",
    summary: "The page behind the link for leaving a list",
    description: "It shows what its reader gets and can change; opening it changes nothing.",
    schemas: { params },
    handle: (ctx, asked) =>
      forPeople(ctx, true, async () =>
        pageOf(ctx, await wishOf(ctx, asked.params.token, asked.caller.address), asked.params.token),
      ),
  }),
  route({
    method: "POST",
    path: "/api/1/emails/unsubscribe/{token}",
    access: "token",
    summary: "Leave the lists with one click",
    description:
      "As RFC 8058 asks: no sign-in, no cookie, no redirect, whatever the body is encoded as. Repeating it changes nothing.",
    schemas: { params },
    consumes: "raw",
    bodyLimit: BODY_LIMIT,
    responses: { 200: z.string() },
    handle: (ctx, asked) =>
      change(ctx, asked, async (wish) => {
        await leave(ctx, wish);
        return { happened: "left", line: "You are unsubscribed." };
      }),
  }),
  route({
    method: "POST",
    path: "/api/1/emails/unsubscribe/{token}/undo",
    access: "token",
    summary: "Take leaving the lists back",
    description: "Lifts the wish alone; bounces and complaints stay.",
    schemas: { params },
    consumes: "raw",
    bodyLimit: BODY_LIMIT,
    responses: { 200: z.string() },
    handle: (ctx, asked) =>
      change(ctx, asked, async (wish) =>
        (await comeBack(ctx, wish))
          ? { happened: "came back", line: "You are subscribed again." }
          : { line: "Nothing was to be taken back." },
      ),
  }),
  route({
    method: "POST",
    path: "/api/1/emails/unsubscribe/{token}/preferences",
    access: "token",
    summary: "Stay on some lists and leave the others",
    description:
      "A form with `choose=lists` and one `list` for each list that its sender wants; none at all is the same as leaving.",
    schemas: { params },
    consumes: "raw",
    bodyLimit: BODY_LIMIT,
    responses: { 200: z.string() },
    handle: (ctx, asked) =>
      change(ctx, asked, async (wish) => {
        const bytes: unknown = asked.body;
        const form = new URLSearchParams(Buffer.isBuffer(bytes) ? bytes.toString("utf8") : "");
        // An empty body is a mistake, not somebody who wants nothing.
        if (form.get("choose") !== "lists") throw errors.unknown_list({ detail: { missing: "choose=lists" } });
        await choose(ctx, wish, form.getAll("list"));
        return { happened: "chose", line: "Your choice is saved." };
      }),
  }),
];
