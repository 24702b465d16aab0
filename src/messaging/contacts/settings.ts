import { z } from "zod";
import { settings as kinds } from "../../kernel/config.ts";

export const settings = {
  allowedCountries: kinds.listOf(
    "sms.allowedCountries",
    z.string().regex(/^[A-Z]{2}$/, "must be two capital letters, such as US"),
    {
      default: [],
      doc: "countries whose phone numbers are accepted, as two letters each: US,CA,DE; empty accepts every country",
    },
  ),
  softBounceThreshold: kinds.integer("email.softBounceThreshold", {
    default: 3,
    min: 1,
    doc: "how many passing bounces within the window suppress an address; 1 suppresses at the first",
  }),
  softBounceWindowDays: kinds.integer("email.softBounceWindowDays", {
    default: 30,
    min: 1,
    unit: "days",
    doc: "how long a passing bounce counts against its address",
  }),
  syncSuppressions: kinds.flag("email.syncSuppressions", {
    default: true,
    doc: "whether bounces and complaints are exchanged every night with the list that the provider of email keeps for the account, where it keeps one",
  }),
  emailsPerUser: kinds.integer("contacts.emailsPerUser", {
    default: 5,
    min: 1,
    max: 100,
    doc: "email addresses that a person may have when they add another by themselves",
  }),
};

/** Tokens that one person may have; the one that was seen longest ago makes room. */
export const TOKENS_PER_USER = 10;
