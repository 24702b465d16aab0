import { z } from "zod";
import { settings as kinds } from "../../kernel/config.ts";

export const settings = {
  rootSecret: kinds.optionalText("root.secret", {
    doc: "The secret that every signing key is derived from, at least 32 characters. Made up and kept in the data folder unless given; all hosts of an installation need the same one.",
    secret: true,
  }),
  environment: kinds.oneOf("env", ["development", "production"], {
    default: "development",
    doc: "What this installation is for. `production` demands what is convenient to leave out elsewhere, such as a root secret of your own. Where `development` is given rather than left as the default, every phone number but the test numbers is switched off each night.",
  }),
  dashboardUrl: {
    ...kinds.optionalText("dashboard.url", {
      doc: "Where people open the dashboard, such as https://bells.example.com; unset, where the server that started last answers.",
    }),
    schema: z
      .string()
      .refine((value) => URL.canParse(value) && new URL(value).origin === value, {
        message: "must be an origin such as https://bells.example.com, without a path",
      })
      .optional(),
  },
  signInLinkLifetime: kinds.seconds("access.signInLinkLifetime", {
    default: 3_600,
    min: 30,
    doc: "How long a link to sign in to the dashboard works, if nobody uses it before.",
  }),
  sessionLifetime: kinds.seconds("access.sessionLifetime", {
    default: 604_800,
    min: 60,
    doc: "How long a browser stays signed in to the dashboard.",
  }),
};
