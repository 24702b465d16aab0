import { settings as kinds } from "../../kernel/config.ts";

export const settings = {
  rootSecret: kinds.optionalText("root.secret", {
    doc: "The secret that every signing key is derived from, at least 32 characters. Made up and kept in the data folder unless given; all hosts of an installation need the same one.",
    secret: true,
  }),
  environment: kinds.oneOf("env", ["development", "production"], {
    default: "development",
    doc: "What this installation is for. `production` demands what is convenient to leave out elsewhere, such as a root secret of your own.",
  }),
};
