import { z } from "zod";
import { isEmailAddress } from "../contacts/service.ts";

/**
 * What parameters of mails are made of. Every text is bounded, well-formed Unicode and free of control characters, so that
 * no value can break out of a line, a header or a charset.
 */
const LINE = /^[^\p{Cc}\p{Cs}\u2028\u2029]*$/u;
const PROSE = /^(?:[^\p{Cc}\p{Cs}]|[\n\r\t])*$/u;

/** Text on one line. */
export const line = (max: number) =>
  z.string().min(1).max(max).regex(LINE, "has control characters, line breaks or broken Unicode");

/** Text that may have several lines. */
export const prose = (max: number) =>
  z.string().min(1).max(max).regex(PROSE, "has control characters or broken Unicode");

/** An address that people may be sent to: https, or http on this machine. */
export const webUrl = () => z.string().max(2000).refine(isMailUrl, "is not an https address").meta({ format: "uri" });

/** A moment in unix seconds, within years that calendars write with four digits. */
export const moment = () => z.number().min(0).max(253_402_300_799);

export const timezone = () => z.string().max(64).refine(isTimezone, "is not a timezone such as Europe/Berlin");

const PLAIN_URL =
  /^((https?):\/\/([a-z0-9.-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?)(?:[/?#][\x21\x23-\x3b\x3d\x3f-\x5b\x5d-\x7e]*)?$/i;
/** What was found out about origins; those that mails lead to are few. */
const origins = new Map<string, boolean>();
const MOST_ORIGINS = 1000;

/** ASCII, without user info, spaces, quotes, angle brackets and backslashes: what every mail client reads the same way. */
export function isMailUrl(raw: string): boolean {
  const found = PLAIN_URL.exec(raw);
  if (!found) return false;
  const [, origin, scheme, host] = found as unknown as [string, string, string, string];
  const known = origins.get(origin);
  if (known !== undefined) return known;
  // What follows an origin, made of these characters, makes no address wrong.
  const answer = URL.canParse(origin) && (scheme.toLowerCase() === "https" || isLoopback(host.toLowerCase()));
  if (origins.size >= MOST_ORIGINS) origins.clear();
  origins.set(origin, answer);
  return answer;
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host.endsWith(".localhost") || host === "[::1]" || /^127(?:\.\d{1,3}){3}$/.test(host);
}

const known = new Map<string, boolean>();

function isTimezone(name: string): boolean {
  const answer = known.get(name) ?? canFormatIn(name);
  // Only real names are remembered, and not every spelling of them: mistakes are endless, and so is capitalisation.
  if (answer && known.size < 1000) known.set(name, true);
  return answer;
}

function canFormatIn(timeZone: string): boolean {
  try {
    new Intl.DateTimeFormat("en", { timeZone });
    return true;
  } catch {
    return false;
  }
}

/** A code that people type: letters, digits, spaces and dashes. */
export const code = () => z.string().regex(/^[A-Za-z0-9][A-Za-z0-9 -]{2,30}[A-Za-z0-9]$/, "is not a code");

/** The address of a mailbox, as text. */
export const mailbox = () => z.string().max(254).refine(isEmailAddress, "is not an email address");

/** How long something is valid. */
export const hours = () => z.number().positive().max(8760);

/** `24 hours`, `1 hour`, `30 minutes`, `7 days`. */
export function inHours(count: number): string {
  if (count < 1) return many(Math.max(1, Math.round(count * 60)), "minute");
  if (count >= 48 && count % 24 === 0) return many(count / 24, "day");
  return many(Math.round(count * 10) / 10, "hour");
}

const many = (count: number, unit: string) => `${count} ${unit}${count === 1 ? "" : "s"}`;
