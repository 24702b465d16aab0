import { z } from "zod";
import { settings as kinds, type Setting } from "../../kernel/config.ts";
import { bareAddress } from "../../providers/email.ts";
import { isEmailAddress } from "../contacts/service.ts";

const Sender = z
  .string()
  .refine((sender) => isEmailAddress(bareAddress(sender)), "must be an address, or `Name <address>`")
  .optional();
const sender = (name: string, doc: string): Setting<string | undefined> => ({
  ...kinds.optionalText(name, { doc }),
  schema: Sender,
});
const publicUrl: Setting<string> = {
  ...kinds.text("email.publicUrl", {
    default: "http://127.0.0.1:8787",
    doc: "where readers of mails reach this installation: the links for leaving a list begin with it",
  }),
  schema: z
    .string()
    .refine((value) => /^https?:\/\//.test(value) && URL.canParse(value), "must be an address: https://example.com"),
};

export const settings = {
  publicUrl,
  from: sender("email.from", "who mails are from: `Name <address>`; needed as soon as a provider is configured"),
  replyTo: sender("email.replyTo", "where answers to mails go; unset, to the sender"),
  unsubscribeMailto: kinds.optionalText("email.unsubscribeMailto", {
    doc: "mailbox that takes wishes to leave a list by mail, as mailto:leave@example.com, beside the link",
  }),
  userSuppressionScope: kinds.oneOf("email.userSuppressionScope", ["lists", "all"], {
    default: "lists",
    doc: "what a person who leaves no longer gets: mails of lists, or all mails, sign-in codes included",
  }),
  unsubscribeKeys: kinds.listOf(
    "unsubscribe.keys",
    z
      .string()
      .regex(/^[a-z1-9][a-z0-9]{0,7}:.{16,}$/, "must be a short name, a colon and a secret of 16 characters or more"),
    {
      default: [],
      doc: "secrets of the links for leaving, each as name:secret; the first makes new links, all are understood. Unset, one that follows from the root secret",
      secret: true,
    },
  ),
  window: kinds.integer("email.window", {
    default: 8,
    min: 1,
    max: 500,
    doc: "how many mails may be with the provider without being settled: what a crash may send twice",
  }),
  claimSize: kinds.integer("email.claimSize", {
    default: 100,
    min: 1,
    max: 500,
    doc: "how many mails the send job takes at once; between two takes urgent mails overtake",
  }),
  maxPerSecond: kinds.integer("email.maxPerSecond", {
    default: 50,
    min: 1,
    doc: "how many mails are sent in a second at most; the provider's own limit may be lower",
  }),
  retryDelays: kinds.listOf("email.retryDelays", z.coerce.number().min(0), {
    default: [15, 60, 300, 1800],
    doc: "seconds before the second to fifth try of a mail",
  }),
  retryAge: kinds.seconds("email.retryAge", {
    default: 43_200,
    doc: "how long after its first queueing a mail is still tried again",
  }),
  receiptTimeout: kinds.seconds("email.receiptTimeoutSeconds", {
    default: 86_400,
    min: 1,
    doc: "how long the receipt of a mail is awaited",
  }),
};
