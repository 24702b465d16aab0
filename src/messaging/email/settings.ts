import { z } from "zod";
import { settings as kinds, type Setting } from "../../kernel/config.ts";
import { bareAddress } from "../../providers/email.ts";
import { isEmailAddress } from "../contacts/service.ts";
import { publicUrl } from "../email_templates/service.ts";
import { MOST_RETRIES } from "./entries.ts";

export { isLoopback } from "../email_templates/service.ts";

/** Room for a token in one line of a header. */
const LONGEST_URL = 200;

/** A display name may hold anything that a header can: no line breaks, no control characters. */
const NAME = /^[^\p{Cc}\p{Cs}\u2028\u2029<>]{0,200}$/u;
const Sender = z
  .string()
  .refine(
    (sender) => isEmailAddress(bareAddress(sender)) && NAME.test(sender.replace(/<[^<>]*>\s*$/, "")),
    "must be an address such as hello@example.com, or a name with it: Example <hello@example.com>",
  )
  .optional();
const sender = (name: string, doc: string): Setting<string | undefined> => ({
  ...kinds.optionalText(name, { doc }),
  schema: Sender,
});

const unsubscribeMailto: Setting<string | undefined> = {
  ...kinds.optionalText("email.unsubscribeMailto", {
    doc: "mailbox that takes wishes to leave a list by mail, as mailto:leave@example.com, beside the link",
  }),
  schema: z
    .string()
    .max(LONGEST_URL)
    .refine((value) => {
      const [, address = "", query = ""] = /^mailto:([^?]*)(\?.*)?$/.exec(value) ?? [];
      return isEmailAddress(address) && /^[\x21-\x7e]*$/.test(query) && !/[<>,]/.test(query);
    }, "must be mailto: and an address, such as mailto:leave@example.com")
    .optional(),
};

/** So many tries after the first one, and no more: entries that were tried more often are not understood. */
const retryDelays: Setting<readonly number[]> = (() => {
  const setting = kinds.listOf("email.retryDelays", z.coerce.number().min(0), {
    default: [15, 60, 300, 1800],
    doc: `seconds before each further try of a mail: so many tries it gets after the first, at most ${MOST_RETRIES}`,
  });
  return {
    ...setting,
    schema: setting.schema.refine(
      (delays) => delays.length <= MOST_RETRIES,
      `must have at most ${MOST_RETRIES} numbers, such as 15,60,300,1800`,
    ),
  };
})();

export const settings = {
  publicUrl,
  from: sender("email.from", "who mails are from: `Name <address>`; needed as soon as a provider is configured"),
  replyTo: sender("email.replyTo", "where answers to mails go; unset, to the sender"),
  unsubscribeMailto,
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
    default: 50,
    min: 1,
    max: 500,
    doc: "how many mails the send job holds at most; a tenth of it is kept free for urgent ones",
  }),
  newsSize: kinds.integer("email.newsSize", {
    default: 100,
    min: 1,
    max: 500,
    doc: "how many deliveries, bounces and complaints are worked in at once",
  }),
  maxPerSecond: kinds.integer("email.maxPerSecond", {
    default: 50,
    min: 1,
    doc: "how many mails are sent in a second at most; the provider's own limit may be lower",
  }),
  retryDelays,
  retryAge: kinds.seconds("email.retryAge", {
    default: 43_200,
    doc: "how long after its first queueing a mail is still tried again",
  }),
  reputationMinimum: kinds.integer("email.reputationMinimum", {
    default: 1000,
    min: 1,
    doc: "how many mails of the last seven days must have been accepted before bounces and complaints among them may pause the mails of lists",
  }),
  receiptTimeout: kinds.seconds("email.receiptTimeoutSeconds", {
    default: 86_400,
    min: 1,
    doc: "how long the receipt of a mail is awaited",
  }),
};
