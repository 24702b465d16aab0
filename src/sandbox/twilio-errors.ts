import type { Answer } from "./exchange.ts";

const MESSAGES: Readonly<Record<number, string>> = {
  20001: "Bad request",
  20003: "Authenticate",
  20404: "The requested resource was not found",
  20429: "Too Many Requests",
  20500: "Internal Server Error",
  20503: "Service unavailable",
  21211: "Invalid 'To' Phone Number",
  21408: "Permission to send an SMS has not been enabled for the region indicated by the 'To' number",
  21602: "Message body is required.",
  21603: "A 'From' phone number or a 'MessagingServiceSid' is required.",
  21604: "A 'To' phone number is required.",
  21610: "Attempt to send to unsubscribed recipient",
  21612: "The 'To' phone number is not currently reachable via SMS",
  21614: "'To' number is not a valid mobile number",
  21617: "The concatenated message body exceeds the 1600 character limit",
};

/** Numbers that are refused with a code of their own, the way Twilio's test numbers are. */
export const MAGIC_NUMBERS: Readonly<Record<string, number>> = {
  "+15005550001": 21211,
  "+15005550002": 21612,
  "+15005550003": 21408,
  "+15005550004": 21610,
  "+15005550009": 21614,
};

/** An error in Twilio's shape; without a code it is one that some proxy on the way made up. */
export function twilioError(status: number, code: number | null): Answer {
  if (code === null) return { status, json: { message: "The request failed.", status } };
  const message = MESSAGES[code] ?? "An error that was asked for.";
  return { status, json: { code, message, more_info: `https://www.twilio.com/docs/errors/${code}`, status } };
}

/** The code that Twilio gives with a status, when nothing more is known. */
export function codeOfStatus(status: number): number {
  if (status === 401 || status === 403) return 20003;
  if (status === 404) return 20404;
  if (status === 429) return 20429;
  if (status === 503) return 20503;
  return status >= 500 ? 20500 : 20001;
}
