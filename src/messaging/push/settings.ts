import { z } from "zod";
import { settings as kinds } from "../../kernel/config.ts";

export const settings = {
  window: kinds.integer("push.window", {
    default: 600,
    min: 1,
    max: 5000,
    doc: "notifications that are with the provider or answered, but not written down: the most that a crash sends twice",
  }),
  maxPerSecond: kinds.integer("push.maxPerSecond", {
    default: 600,
    min: 1,
    doc: "notifications that are sent in any second; Expo takes 600 a second and project",
  }),
  maxPerRun: kinds.integer("push.maxPerRun", {
    default: 0,
    doc: "notifications that one run of the send or the check job handles; 0: as many as its time allows",
  }),
  retryDelays: kinds.listOf("push.retryDelays", z.coerce.number().min(0), {
    default: [15, 60, 300],
    doc: "seconds before each further try of a notification that could not be sent; the next failure gives it up",
  }),
  receiptDelay: kinds.seconds("push.receiptDelay", {
    default: 900,
    doc: "how long a ticket rests before its receipt is asked for",
  }),
  receiptRetries: kinds.integer("push.receiptRetries", {
    default: 3,
    doc: "how often a receipt that could not be had is asked for again",
  }),
  maxAge: kinds.seconds("push.maxAge", {
    default: 43_200,
    doc: "how long after it was queued a notification is still tried again",
  }),
};
