import { z } from "zod";
import { settings as kinds } from "../../kernel/config.ts";

export const settings = {
  enabled: kinds.oneOf("sandbox.enabled", ["auto", "true", "false"], {
    default: "auto",
    doc: "Whether the web process runs simulated providers of push, SMS and email; auto: in development, while the server listens on this machine only",
  }),
  allowed: kinds.flag("sandbox.allowed", {
    env: "CARILLON_ALLOW_SANDBOX",
    default: false,
    doc: "Permits simulated providers where others could meet them: in production, or on a server that listens beyond this machine. Nobody is reached by what they are given",
  }),
  port: kinds.integer("sandbox.port", {
    default: 8790,
    max: 65_535,
    doc: "The port on this machine where the simulated providers answer; 0 takes any free one",
  }),
  smtpPort: kinds.integer("sandbox.smtpPort", {
    default: 8791,
    max: 65_535,
    doc: "The port on this machine where the simulated mail server answers; 0 takes any free one",
  }),
  publicUrl: {
    ...kinds.optionalText("sandbox.publicUrl", {
      doc: "Where the simulated providers post their webhooks; unset, the server's own address on this machine",
    }),
    schema: z
      .string()
      .refine((value) => /^https?:\/\//.test(value) && URL.canParse(value), { message: "must begin with http://" })
      .optional(),
  },
  seed: kinds.integer("sandbox.seed", {
    default: 1,
    max: 4_294_967_295,
    doc: "What the faults of the simulated providers follow from: the same seed and the same requests give the same faults",
  }),
  keep: kinds.integer("sandbox.keep", {
    default: 1000,
    min: 1,
    max: 100_000,
    doc: "How many messages the inbox of the simulated providers keeps",
  }),
};
