import type { FastifyRequest } from "fastify";
import { renderSVG } from "uqr";
import { z } from "zod";
import { route } from "../../domain.ts";
import type { Context } from "../../jobs/context.ts";
import { CarillonError } from "../../kernel/errors.ts";
import type { Caller, Route, RouteReply } from "../../kernel/route.ts";
import { EmailAddress } from "../contacts/service.ts";
import { adminRoutes } from "./admin-routes.ts";
import { CLICK_UID, CODE } from "./entries.ts";
import { errors } from "./errors.ts";
import { type Follower, follow, followedBySignIn, look } from "./follow.ts";
import { linkPage, nowherePage, unsubscribePage } from "./html.ts";
import { atRoot } from "./pages.ts";
import { comeBackByCode, unsubscribeByCode } from "./unsubscribe.ts";

const Code = z.string().min(1).max(255).regex(CODE, "is not the code of a link");
const WithCode = z.object({ code: Code });
const NO_STORE = { "cache-control": "no-store" };
const Tags = z.object({ title: z.string(), description: z.string(), image: z.string().nullable(), url: z.string() });

function followerOf({ caller, raw }: { readonly caller: Caller; readonly raw: unknown }): Follower {
  const { method, headers } = raw as FastifyRequest;
  return { method, headers, userSub: caller.role === "anonymous" ? undefined : caller.sub };
}

/** Browsers ask for pages; programs get refusals as everywhere else. */
const wantsPage = ({ raw }: { readonly raw: unknown }) =>
  (raw as FastifyRequest).headers.accept?.includes("text/html") ?? false;

/** `/l/{code}`, and `/a/{code}` for apps that open such addresses themselves. */
const doors = ["/l/{code}", "/a/{code}"].flatMap((path): readonly Route<Context>[] => [
  route({
    method: "GET",
    path,
    access: "public",
    summary: "The page behind a link",
    description:
      "Shows chats a preview and sends people on. Fetching it is no click; a code that nobody made looks alike.",
    schemas: { params: WithCode },
    async handle(ctx, request) {
      const { code } = request.params;
      const { tags } = await look(ctx, code, followerOf(request));
      return linkPage(ctx, tags, code);
    },
  }),
  route({
    method: "POST",
    path,
    access: "public",
    summary: "Follow a link",
    description:
      "Keeps the click and redirects to where the link leads. The page behind the link sends this by itself.",
    schemas: { params: WithCode },
    consumes: "nothing",
    quiet: true,
    async handle(ctx, request) {
      try {
        const { url } = await follow(ctx, request.params.code, followerOf(request));
        return { status: 303, headers: { location: url, ...NO_STORE }, body: "" };
      } catch (error) {
        if (errors.link_not_found.matches(error) && wantsPage(request)) return nowherePage(ctx);
        throw error;
      }
    },
  }),
]);

/** Reads the address of a form, does what is wished with it, and answers with a page either way. */
async function byForm(
  ctx: Context,
  { params: { code }, body }: { readonly params: { readonly code: string }; readonly body: unknown },
  act: (wish: { readonly code: string; readonly email: string }) => Promise<"left" | "noted" | "came back">,
  below = false,
): Promise<RouteReply> {
  const form = new URLSearchParams(Buffer.isBuffer(body) ? body.toString("utf8") : "");
  const email = EmailAddress.safeParse(form.get("email") ?? "");
  const refuse = (status: number, text: string, retryAfter?: number) =>
    unsubscribePage(ctx, code, { kind: "refused", status, text, retryAfter, below });
  if (!email.success) return refuse(422, "That is not an email address.");
  try {
    return unsubscribePage(ctx, code, { kind: await act({ code, email: email.data }), email: email.data });
  } catch (error) {
    if (errors.invalid_code.matches(error)) return nowherePage(ctx, errors.invalid_code().status);
    const known = [errors.email_mismatch, errors.too_many_uses, errors.too_many_leaves].some((each) =>
      each.matches(error),
    );
    if (!known || !(error instanceof CarillonError)) throw error;
    return refuse(error.status, error.message, error.retryAfter);
  }
}

const unsubscribing: readonly Route<Context>[] = [
  route({
    method: "GET",
    path: "/l/{code}/unsubscribe",
    access: "public",
    summary: "The page for leaving with the link of a mail",
    description: "It has one form and changes nothing by itself.",
    schemas: { params: WithCode },
    async handle(ctx, request) {
      const { code } = request.params;
      const { tags } = await look(ctx, code, followerOf(request));
      return unsubscribePage(ctx, code, { tags });
    },
  }),
  route({
    method: "POST",
    path: "/l/{code}/unsubscribe",
    access: "public",
    summary: "Leave with the form behind the link of a mail",
    schemas: { params: WithCode },
    consumes: "raw",
    bodyLimit: 4_096,
    handle: (ctx, request) =>
      byForm(ctx, request, async (wish) => {
        const when = await unsubscribeByCode(ctx, wish, followerOf(request).userSub);
        return when === "done" ? "left" : "noted";
      }),
  }),
  route({
    method: "POST",
    path: "/l/{code}/unsubscribe/undo",
    access: "public",
    summary: "Take leaving back with the form behind the link of a mail",
    description: "Lifts the wish alone; bounces and complaints stay.",
    schemas: { params: WithCode },
    consumes: "raw",
    bodyLimit: 4_096,
    handle: (ctx, request) =>
      byForm(
        ctx,
        request,
        async (wish) => {
          await comeBackByCode(ctx, wish, followerOf(request).userSub);
          return "came back";
        },
        true,
      ),
  }),
  route({
    method: "POST",
    path: "/api/1/notifications/unsubscribe_by_email",
    access: "public",
    summary: "Leave with the code of a link in a mail",
    description: "For people who are not signed in: the code proves that they read the mail.",
    schemas: { body: z.strictObject({ email: EmailAddress, code: Code }) },
    responses: { 202: z.object({}) },
    async handle(ctx, request) {
      await unsubscribeByCode(ctx, request.body, followerOf(request).userSub);
      return { status: 202, headers: NO_STORE, body: {} };
    },
  }),
];

/** Drawn without a look at what the code is, so that nobody learns from it which codes there are. */
const qrCode = route({
  method: "GET",
  path: "/l/{code}.svg",
  access: "public",
  summary: "A link as a QR code",
  description: "For print and for screens. It is drawn for any code; fetching it is no click.",
  schemas: { params: WithCode },
  async handle(ctx, { params: { code } }) {
    const picture = renderSVG(atRoot(ctx, `/l/${code}`), { ecc: "M", border: 2 });
    const headers = { "content-type": "image/svg+xml; charset=utf-8", "cache-control": "public, max-age=86400" };
    return { status: 200, headers, body: picture };
  },
});

const oneClick = route({
  method: "POST",
  path: "/api/1/notifications/one_click/{code}",
  access: "public",
  summary: "Leave with the button that a mailbox shows",
  description: "For `List-Unsubscribe-Post`: the code alone decides, for every address that its mail went to.",
  schemas: { params: WithCode },
  consumes: "raw",
  bodyLimit: 4_096,
  responses: { 202: z.object({}) },
  async handle(ctx, request) {
    await unsubscribeByCode(ctx, { code: request.params.code }, followerOf(request).userSub);
    return { status: 202, headers: NO_STORE, body: {} };
  },
});

export const routes: readonly Route<Context>[] = [
  ...doors,
  qrCode,
  oneClick,
  ...unsubscribing,
  route({
    method: "POST",
    path: "/api/1/notifications/complete",
    access: "public",
    summary: "Exchange the code of a link for where it leads",
    description:
      "The click is kept. Say who you are with `Authorization`, and which visitor with the header `Visitor`.",
    schemas: { body: z.strictObject({ code: Code }) },
    responses: {
      200: z.object({
        page_identifier: z.string(),
        page_extra: z.record(z.string(), z.unknown()),
        click_uid: z.string().meta({ description: "Send it to `post_login` if the person signs in now" }),
      }),
    },
    quiet: true,
    async handle(ctx, request) {
      const { page_identifier, page_extra, click_uid } = await follow(ctx, request.body.code, followerOf(request));
      return { status: 200, headers: NO_STORE, body: { page_identifier, page_extra, click_uid } };
    },
  }),
  route({
    method: "POST",
    path: "/api/1/notifications/post_login",
    access: "user",
    summary: "Say that you signed in right after a click",
    description: "Answers the same whether that was kept or not.",
    schemas: { body: z.strictObject({ code: Code, uid: z.string().regex(CLICK_UID, "is not the uid of a click") }) },
    responses: { 202: z.object({}) },
    async handle(ctx, request) {
      const { code, uid } = request.body;
      await followedBySignIn(ctx, code, uid, { ...followerOf(request), userSub: request.caller.sub ?? "" });
      return { status: 202, headers: NO_STORE, body: {} };
    },
  }),
  route({
    method: "GET",
    path: "/api/1/notifications/preview",
    access: "public",
    summary: "How a link looks before it is followed",
    schemas: { query: z.object({ code: Code }) },
    responses: { 200: Tags },
    async handle(ctx, request) {
      const { code } = request.query;
      const { tags } = await look(ctx, code, followerOf(request));
      return { status: 200, headers: NO_STORE, body: { ...tags, url: atRoot(ctx, `/l/${code}`) } };
    },
  }),
  ...adminRoutes,
];
