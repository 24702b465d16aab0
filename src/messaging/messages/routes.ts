import { z } from "zod";
import { route } from "../../domain.ts";
import type { Context } from "../../jobs/context.ts";
import type { Route } from "../../kernel/route.ts";
import { carriedBy } from "./carriers.ts";
import { errors } from "./errors.ts";
import { messagesForAddress, traceMessage } from "./service.ts";

const Time = z.number().nullable();
const Word = z.string().nullable();

const Trace = z.object({
  uid: z.string(),
  channel: z.string(),
  now: z.array(
    z.object({
      uid: z.string(),
      channel: z.string(),
      place: z.string(),
      state: z.string(),
      since: Time,
      due: Time,
      ahead: z.int().nullable(),
      failed_tries: z.int().nullable(),
      provider: Word,
      provider_id: Word,
    }),
  ),
  steps: z.array(
    z.object({ channel: z.string(), step: z.string(), at: z.number(), provider: Word, detail: Word, lasted: Time }),
  ),
  seconds: Time,
});

const Known = z.object({
  uid: z.string(),
  channel: z.string(),
  first_at: z.number(),
  last_step: z.string(),
  last_at: z.number(),
});

const UNCACHED = { "cache-control": "no-store" };

export const routes: readonly Route<Context>[] = [
  route({
    method: "GET",
    path: "/api/1/admin/providers/carried",
    access: "admin",
    summary: "Which provider carried how many messages, by day and channel, the latest day first",
    description:
      "Counted from the steps of messages that have reached SQL: `accepted` where a provider took one, and how it failed where it did not.",
    schemas: {
      query: z.object({
        days: z.coerce.number().int().min(1).max(30).default(7).meta({ description: "Today included" }),
      }),
    },
    responses: {
      200: z.object({
        items: z.array(
          z.object({
            date: z.string(),
            channel: z.string(),
            provider: z.string(),
            steps: z.record(z.string(), z.number()),
          }),
        ),
      }),
    },
    handle: async (ctx, { query }) => ({
      status: 200,
      headers: UNCACHED,
      body: { items: await carriedBy(ctx, query.days) },
    }),
  }),
  route({
    method: "GET",
    path: "/api/1/admin/messages/{uid}",
    access: "admin",
    summary: "Where a message is now, and what happened to it",
    description:
      "`now` says in which queue, set or job it is, and is empty once it has ended; `steps` are its story, each with the seconds until the next.",
    schemas: { params: z.object({ uid: z.string().min(1).max(128) }) },
    responses: { 200: Trace },
    async handle(ctx, { params }) {
      const trace = await traceMessage(ctx, params.uid);
      if (!trace) throw errors.unknown_message({ message: `Nothing is known of a message ${params.uid}.` });
      return { status: 200, headers: UNCACHED, body: trace };
    },
  }),
  route({
    method: "GET",
    path: "/api/1/admin/messages",
    access: "admin",
    summary: "Messages to one address, newest first",
    description: "The address is an email address, a phone number with its plus sign, or a push token.",
    schemas: {
      query: z.object({
        address: z.string().min(1).max(254),
        before: z.coerce.number().optional().meta({ description: "`next` of the page before" }),
        limit: z.coerce.number().int().min(1).max(200).default(50),
      }),
    },
    responses: { 200: z.object({ items: z.array(Known), next: z.number().optional() }) },
    async handle(ctx, { query: { address, ...page } }) {
      return { status: 200, headers: UNCACHED, body: await messagesForAddress(ctx, address, page) };
    },
  }),
];
