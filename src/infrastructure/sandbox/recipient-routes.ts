import { z } from "zod";
import { route } from "../../domain.ts";
import { Answered } from "./inbox-routes.ts";
import { stageOf } from "./local-callers.ts";
import { MessageSummary, summaryOf } from "./message-view.ts";

const To = z.object({ to: z.string().min(1).max(320).meta({ description: "An address, a number or a push token" }) });
const Token = z.string().min(1).max(8_192);

/** The people at the other end: what they got, and what they do with it. */
export const recipientRoutes = [
  route({
    method: "GET",
    path: "/sandbox/api/recipients/{to}",
    access: "public",
    summary: "What somebody got, newest first, with the codes of the links in it",
    schemas: { params: To },
    responses: { 200: z.object({ items: z.array(MessageSummary.extend({ codes: z.array(z.string()) })) }) },
    handle: (ctx, request) => {
      const { inbox, recipients } = stageOf(ctx, request);
      const items = recipients
        .received(request.params.to)
        .map(({ message, codes }) => ({ ...summaryOf(inbox, message), codes: [...codes] }));
      return { status: 200, body: { items } };
    },
  }),
  route({
    method: "POST",
    path: "/sandbox/api/recipients/click",
    access: "public",
    summary: "Somebody follows a link as a browser does, and perhaps signs in afterwards",
    schemas: {
      body: z.strictObject({
        code: z.string().regex(/^[A-Za-z0-9_-]{1,255}$/, "is not the code of a link"),
        signed_in: Token.optional().meta({ description: "The access token of somebody who is signed in" }),
        visitor: z.string().max(128).optional(),
        then_login: z.strictObject({ token: Token, after: z.number().min(0).max(60).optional() }).optional(),
      }),
    },
    responses: {
      200: z.object({
        answered: z.number(),
        page: z.string().nullable(),
        click_uid: z.string().nullable(),
        login: z.number().nullable().meta({ description: "What the sign-in was answered" }),
      }),
    },
    handle: async (ctx, request) => {
      const { code, signed_in: signedIn, visitor, then_login: thenLogin } = request.body;
      const following = { signedIn, visitor, thenLogin: thenLogin && { ...thenLogin, after: thenLogin.after ?? 0 } };
      const { clickUid, ...followed } = await stageOf(ctx, request).recipients.click(code, following);
      return { status: 200, body: { ...followed, click_uid: clickUid } };
    },
  }),
  route({
    method: "POST",
    path: "/sandbox/api/recipients/{to}/unsubscribe",
    access: "public",
    summary: "Takes the unsubscribe link of their newest mail and sends its form",
    schemas: { params: To },
    responses: { 200: Answered },
    handle: async (ctx, request) => ({
      status: 200,
      body: await stageOf(ctx, request).recipients.unsubscribe(request.params.to),
    }),
  }),
  route({
    method: "POST",
    path: "/sandbox/api/recipients/{to}/text",
    access: "public",
    summary: "They send the house a text, such as STOP",
    schemas: { params: To, body: z.strictObject({ text: z.string().min(1).max(1600) }) },
    responses: { 200: Answered },
    handle: async (ctx, request) => ({
      status: 200,
      body: await stageOf(ctx, request).recipients.text(request.params.to, request.body.text),
    }),
  }),
];
