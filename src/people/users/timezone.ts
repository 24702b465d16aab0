import { z } from "zod";

/** Whether the platform's timezone database knows the name; offsets such as `+02:00` are no zones and have no summer. */
export function isTimezone(name: string): boolean {
  if (!/^[A-Za-z][A-Za-z0-9_+/-]{0,63}$/.test(name)) return false;
  try {
    new Intl.DateTimeFormat("en", { timeZone: name });
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
