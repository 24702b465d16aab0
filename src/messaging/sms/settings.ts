import { z } from "zod";
import { settings as kinds, type Setting } from "../../kernel/config.ts";
import { UNREACHABLE_CODES } from "../../providers/sms.ts";
import { E164 } from "./entries.ts";

const WebAddress = z
  .string()
  .refine((value) => /^https?:\/\//.test(value) && URL.canParse(value), "must be an address: https://example.com")
  .optional();
const publicUrl: Setting<string | undefined> = {
  ...kinds.optionalText("sms.publicUrl", {
    doc: "where the provider of texts reaches this installation, such as https://example.com: webhooks are asked for and checked with it. Unset, the provider is asked for news instead",
  }),
  schema: WebAddress,
};

export const settings = {
  publicUrl,
  statusCallback: kinds.flag("sms.twilio.statusCallback", {
    default: true,
    doc: "whether the provider is asked to report each change of a text's status; needs sms.publicUrl",
  }),
  window: kinds.integer("sms.window", {
    default: 8,
    min: 1,
    max: 500,
    doc: "how many texts may be with the provider without being settled: what a crash leaves to be looked up",
  }),
  maxPerSecond: kinds.integer("sms.maxPerSecond", {
    default: 0,
    doc: "how many texts are sent in a second at most; 0 sets no limit of our own",
  }),
  retryDelays: kinds.listOf("sms.retryDelays", z.coerce.number().min(0), {
    default: [15, 60, 300],
    doc: "seconds before the second, third and fourth try of a text",
  }),
  retryAge: kinds.seconds("sms.retryAge", {
    default: 43_200,
    doc: "how long after its first queueing a text is still tried again",
  }),
  silence: kinds.seconds("sms.silence", {
    default: 900,
    min: 1,
    doc: "how long a message may be without news before its failure job hears of it",
  }),
  silenceWithoutCallbacks: kinds.seconds("sms.silenceWithoutCallbacks", {
    default: 60,
    min: 1,
    doc: "the same for the first time where the provider does not report by itself",
  }),
  testNumbers: kinds.listOf("sms.testNumbers", z.string().regex(E164), {
    default: ["+15555555555"],
    doc: "numbers that are never texted: their messages fail at once",
  }),
  unreachableCodes: kinds.listOf("sms.unreachableCodes", z.string().regex(/^\d+$/), {
    default: UNREACHABLE_CODES,
    doc: "codes of the provider after which a number gets no more texts",
  }),
  replyStopped: kinds.text("sms.reply.stopped", {
    default: "You will get no more texts from us. Reply START to get them again.",
    doc: "answer to a text that says STOP",
  }),
  replyRestarted: kinds.text("sms.reply.restarted", {
    default: "You will get texts from us again. Reply STOP to end them.",
    doc: "answer to a text that says START",
  }),
  replyReceived: kinds.text("sms.reply.received", {
    default: "Nobody reads this number. Reply STOP to get no more texts.",
    doc: "answer to any other text",
  }),
  replyError: kinds.text("sms.reply.error", {
    default: "Something went wrong on our side. Please try again later.",
    doc: "answer to a text that could not be handled; name your support address here",
  }),
};
