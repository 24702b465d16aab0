import { createHmac } from "node:crypto";

/**
 * Twilio's signature of a form post: the whole address, then every name and value in the order of the names by code unit,
 * blanks included, under the account's auth token.
 */
export function twilioSignature(authToken: string, url: string, fields: Readonly<Record<string, string>>): string {
  const names = Object.keys(fields).sort((a, b) => (a < b ? -1 : 1));
  const signed = url + names.map((name) => name + fields[name]).join("");
  return createHmac("sha1", authToken).update(signed, "utf8").digest("base64");
}
