import { z } from "zod";

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;

/** Why a text is no address for webhooks; undefined when it is one. */
function faultOf(text: string): string | undefined {
  if (!URL.canParse(text)) return "is not an address";
  const { protocol, hostname, username, password, hash } = new URL(text);
  if (username !== "" || password !== "") return "must not hold credentials: requests are signed instead";
  if (hash !== "") return "must not have a fragment";
  if (protocol === "https:") return undefined;
  if (protocol !== "http:") return "must begin with https://";
  return LOOPBACK.test(hostname) ? undefined : "must begin with https://, unless it leads to this machine";
}

/** Where events may be sent: anywhere over TLS, and without it only to the machine itself. */
export const EndpointAddress = z
  .string()
  .max(2_048)
  .check(({ value, issues }) => {
    const message = faultOf(value);
    if (message) issues.push({ code: "custom", message, input: value });
  });

/** The part of an address that may be told: paths and queries of receivers are often secrets. */
export function hostOf(url: string): string {
  return new URL(url).host;
}
