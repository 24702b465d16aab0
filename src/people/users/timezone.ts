import { z } from "zod";

/** Zones that were looked up: the platform takes long to say it, and jobs ask of the same few again and again. */
const known = new Set<string>();
const MOST_KNOWN = 2_000;

/** Whether the platform's timezone database knows the name; offsets such as `+02:00` are no zones and have no summer. */
export function isTimezone(name: string): boolean {
  if (known.has(name)) return true;
  if (!/^[A-Za-z][A-Za-z0-9_+/-]{0,63}$/.test(name)) return false;
  try {
    new Intl.DateTimeFormat("en", { timeZone: name });
    if (known.size < MOST_KNOWN) known.add(name);
    return true;
  } catch {
    return false;
  }
}

export const Timezone = z
  .string()
  .max(64)
  .refine(isTimezone, { message: "is not an IANA timezone such as Europe/Berlin" })
  .meta({ description: "IANA timezone name", examples: ["Europe/Berlin"] });
