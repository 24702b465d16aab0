import { randomBytes } from "node:crypto";
import type { FastifyRequest } from "fastify";
import { z } from "zod";
import { route } from "../../domain.ts";
import type { Context } from "../../jobs/context.ts";
import type { Caller, Route } from "../../kernel/route.ts";
import { EmailAddress } from "../contacts/service.ts";
import { adminRoutes } from "./admin-routes.ts";
import { CLICK_UID, CODE } from "./entries.ts";
import { errors } from "./errors.ts";
import { type Follower, follow, followedBySignIn, look } from "./follow.ts";
import { linkPage, PAGE_HEADERS, unsubscribePage } from "./html.ts";
import { atRoot, tagsOf } from "./pages.ts";
import { unsubscribeByCode } from "./unsubscribe.ts";

const Code = z.string().min(1).max(255).regex(CODE, "is not the code of a link");
const WithCode = z.object({ code: Code });
const NO_STORE = { "cache-control": "no-store" };
const Tags = z.object({ title: z.string(), description: z.string(), image: z.string().nullable(), url: z.string() });

function followerOf({ caller, raw }: { readonly caller: Caller; readonly raw: unknown }): Follower {
  const { method, headers } = raw as FastifyRequest;
  return { method, headers, userSub: caller.role === "anonymous" ? undefined : caller.sub };
}

const policy = (nonce: string) =>
  `default-src 'none'; script-src 'nonce-${nonce}'; style-src 'unsafe-inline'; form-action *; base-uri 'none'; frame-ancestors 'none'`;

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
      const nonce = randomBytes(12).toString("base64url");
      const headers = { ...PAGE_HEADERS, "content-security-policy": policy(nonce) };
      return { status: 200, headers, body: linkPage(tags, atRoot(ctx, `/l/${code}`), nonce) };
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
    consumes: "raw",
    bodyLimit: 4_096,
    quiet: true,
    async handle(ctx, request) {
      const { url } = await follow(ctx, request.params.code, followerOf(request));
      return { status: 303, headers: { location: url, ...NO_STORE }, body: "" };
    },
  }),
]);

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
      const headers = { ...PAGE_HEADERS, "content-security-policy": policy("none") };
      return { status: 200, headers, body: unsubscribePage(tags, atRoot(ctx, `/l/${code}`)) };
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
    async handle(ctx, request) {
      const { code } = request.params;
      const body: unknown = request.body;
      const form = new URLSearchParams(Buffer.isBuffer(body) ? body.toString("utf8") : "");
      const email = EmailAddress.safeParse(form.get("email") ?? "");
      const answer = (status: number, text: string, done = false) => ({
        status,
        headers: { ...PAGE_HEADERS, "content-security-policy": policy("none") },
        body: unsubscribePage(tagsOf(ctx, undefined), atRoot(ctx, `/l/${code}`), { text, done }),
      });
      if (!email.success) return answer(422, "That is not an email address.");
      try {
        await unsubscribeByCode(ctx, { code, email: email.data }, followerOf(request).userSub);
      } catch (error) {
        for (const refused of [errors.invalid_code, errors.email_mismatch, errors.too_many_uses])
          if (refused.matches(error)) return answer((error as { status: number }).status, (error as Error).message);
        throw error;
      }
      return answer(200, `${email.data} gets no more of these mails.`, true);
    },
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
