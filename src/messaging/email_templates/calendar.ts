import { createHash } from "node:crypto";

/** An event as calendars read it (RFC 5545): one VEVENT in UTC, so that no table of timezones has to travel with it. */
export interface CalendarEvent {
  readonly title: string;
  readonly starts_at: number;
  readonly ends_at: number;
  readonly venue: string;
  readonly url: string;
  /** When the file is made, in unix seconds. */
  readonly at: number;
}

export function calendarFile({ title, starts_at, ends_at, venue, url, at }: CalendarEvent): string {
  // The same event keeps its uid, so that a second mail about it does not enter it twice.
  const uid = createHash("sha256").update(url).digest("hex").slice(0, 32);
  const lines = [
    "BEGIN:VCALENDAR",
    "VERSION:2.0",
    "PRODID:-//Carillon//Events//EN",
    "METHOD:PUBLISH",
    "BEGIN:VEVENT",
    `UID:${uid}@carillon`,
    `DTSTAMP:${stamp(at)}`,
    `DTSTART:${stamp(starts_at)}`,
    `DTEND:${stamp(ends_at)}`,
    `SUMMARY:${escaped(title)}`,
    `LOCATION:${escaped(venue)}`,
    `URL:${url}`,
    "END:VEVENT",
    "END:VCALENDAR",
  ];
  return `${lines.map(folded).join("\r\n")}\r\n`;
}

const stamp = (seconds: number) => `${new Date(seconds * 1000).toISOString().replaceAll(/[-:]|\.\d+/g, "")}`;

const escaped = (text: string) => text.replaceAll(/[\\;,]/g, "\\$&").replaceAll(/\r\n?|\n/g, "\\n");

/** No line is longer than 75 bytes; what goes on starts with a space. Characters stay whole. */
function folded(line: string): string {
  let [out, width] = ["", 0];
  for (const character of line) {
    const bytes = Buffer.byteLength(character);
    if (width + bytes > 75) {
      out += "\r\n ";
      width = 1;
    }
    out += character;
    width += bytes;
  }
  return out;
}

interface Formats {
  readonly day: Intl.DateTimeFormat;
  readonly time: Intl.DateTimeFormat;
  readonly zone: Intl.DateTimeFormat;
}
const formats = new Map<string, Formats>();

/** `Thursday, 31 December 2026, 20:00 – 22:00 (Central European Standard Time)`, with both days where they differ. */
export function whenInWords(from: number, to: number, timezone: string): string {
  const { day, time, zone } = formatsIn(timezone);
  const [start, end] = [new Date(from * 1000), new Date(to * 1000)];
  const [first, last] = [day.format(start), day.format(end)];
  const until = first === last ? time.format(end) : `${last}, ${time.format(end)}`;
  const name = zone.formatToParts(start).find(({ type }) => type === "timeZoneName")?.value ?? timezone;
  return `${first}, ${time.format(start)} – ${until} (${name})`;
}

/** Making a format costs a thousand times what using it does. */
function formatsIn(timeZone: string): Formats {
  let found = formats.get(timeZone);
  if (!found) {
    found = {
      day: new Intl.DateTimeFormat("en-GB", {
        timeZone,
        weekday: "long",
        day: "numeric",
        month: "long",
        year: "numeric",
      }),
      time: new Intl.DateTimeFormat("en-GB", { timeZone, hour: "2-digit", minute: "2-digit", hourCycle: "h23" }),
      zone: new Intl.DateTimeFormat("en-GB", { timeZone, timeZoneName: "long" }),
    };
    if (formats.size < 1000) formats.set(timeZone, found);
  }
  return found;
}
