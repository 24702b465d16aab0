import {
  IconAlertTriangle,
  IconBriefcase,
  IconBroadcast,
  IconClockHour4,
  IconDeviceMobileMessage,
  IconHeartRateMonitor,
  IconKey,
  IconLayoutDashboard,
  IconLink,
  IconMail,
  IconMessage2,
  IconSend,
  IconSettings,
  IconSpeakerphone,
  IconTemplate,
  IconUsers,
} from "@tabler/icons-react";

export interface Place {
  readonly path: string;
  readonly label: string;
  readonly icon: typeof IconKey;
}

export interface PlaceGroup {
  readonly label: string;
  readonly places: readonly Place[];
}

/** Where one can go, in the order in which the menu shows it. Every place has a page in `router.tsx`. */
export const NAVIGATION: readonly PlaceGroup[] = [
  {
    label: "Now",
    places: [
      { path: "/", label: "Overview", icon: IconLayoutDashboard },
      { path: "/jobs", label: "Jobs", icon: IconBriefcase },
      { path: "/alerts", label: "Alerts", icon: IconAlertTriangle },
    ],
  },
  {
    label: "Channels",
    places: [
      { path: "/push", label: "Push", icon: IconDeviceMobileMessage },
      { path: "/sms", label: "SMS", icon: IconMessage2 },
      { path: "/email", label: "Email", icon: IconMail },
    ],
  },
  {
    label: "Messages",
    places: [
      { path: "/templates", label: "Templates", icon: IconTemplate },
      { path: "/touch-points", label: "Touch points", icon: IconSpeakerphone },
      { path: "/touches", label: "Touches", icon: IconSend },
      { path: "/campaigns", label: "Campaigns", icon: IconBroadcast },
      { path: "/links", label: "Links", icon: IconLink },
      { path: "/reminders", label: "Reminders", icon: IconClockHour4 },
    ],
  },
  {
    label: "Everything else",
    places: [
      { path: "/people", label: "People", icon: IconUsers },
      { path: "/data-health", label: "Data health", icon: IconHeartRateMonitor },
      { path: "/keyspace", label: "Keyspace", icon: IconKey },
      { path: "/settings", label: "Settings", icon: IconSettings },
    ],
  },
];
