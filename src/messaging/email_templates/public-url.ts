import { z } from "zod";
import { settings as kinds, type Setting } from "../../kernel/config.ts";

/** Room for a token in one line of a header. */
const LONGEST_URL = 200;
/** Declared here because pictures in mails need it too; it is listed with the settings of the email room. */
export const publicUrl: Setting<string> = {
  ...kinds.text("email.publicUrl", {
    default: "http://127.0.0.1:8787",
    doc: "where readers of mails reach this installation: the links for leaving a list and the addresses of pictures begin with it",
  }),
  schema: z
    .string()
    .max(LONGEST_URL)
    .refine(
      isPublicUrl,
      "must begin with https:// and end with a host or a path, such as https://example.com; http:// only for this machine",
    ),
};

function isPublicUrl(value: string): boolean {
  if (!URL.canParse(value) || /[\s,<>]/.test(value)) return false;
  const { protocol, hostname, username, password, search, hash } = new URL(value);
  if (username || password || search || hash) return false;
  return protocol === "https:" || (protocol === "http:" && isLoopback(hostname));
}

export const isLoopback = (hostname: string): boolean =>
  /^(localhost|127(?:\.\d{1,3}){3}|\[::1\])$/.test(hostname) || hostname.endsWith(".localhost");
