import { dailyStats } from "../../mechanisms/dated-counters/index.ts";
import type { Channel } from "./tables.ts";

/** What happens to contact methods, dated by the moment it happens. */
export const contactMethodStats = dailyStats({
  family: "contact_methods",
  keysFamily: "contacts",
  title: "Contact methods",
  table: "contact_method_stats",
  held: 2,
  origin: "documented",
  alias: {
    daily: ["/contact_methods/contact_method_stats", "/contact_methods/daily_contact_methods"],
    partial: "/contact_methods/partial_contact_method_stats",
  },
  events: {
    created: {
      by: "{channel}:{verified|unverified}:{enabled|disabled}:{cause}; push: {channel}:{enabled|disabled}:{cause}",
    },
    deleted: { by: "{channel}:{cause}" },
    verified: { by: "{channel}:{cause}" },
    enabled_notifications: { by: "{channel}:{cause}" },
    disabled_notifications: { by: "{channel}:{cause}" },
  },
});

type Standing = `${"verified" | "unverified"}:${"enabled" | "disabled"}`;

/** The closed vocabulary of each event's breakdown: a word that is not here does not compile. */
export interface ContactWords {
  created:
    | `email:${Standing}:${"identity" | "user" | "migration"}`
    | `phone:${Standing}:${"identity" | "verify" | "migration"}`
    | `push:${"enabled" | "disabled"}:${"app" | "migration"}`;
  deleted: `${Channel}:${"account" | "user"}` | `push:${"reassigned" | "excessive" | "device_not_registered"}`;
  verified: `email:${"identity" | "verify"}` | `phone:${"identity" | "verify" | "sms_start"}`;
  enabled_notifications: "phone:verify" | `${Channel}:user`;
  disabled_notifications: `${Channel}:unsubscribe` | `phone:${"verify" | "dev_auto_disable"}`;
}
export type ContactEvent = keyof ContactWords;
