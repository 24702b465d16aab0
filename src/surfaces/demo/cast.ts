import type { Platform } from "../../messaging/contacts/service.ts";
import type { TouchChannel } from "../../messaging/touch/service.ts";

/**
 * The people of the demo. Everything about a person follows from their number, so that who they are need not be kept
 * anywhere: the database says which of them have joined.
 */
export interface Person {
  readonly number: number;
  readonly sub: string;
  readonly given: string;
  readonly family: string;
  readonly zone: string;
  readonly email: string | undefined;
  readonly phone: string | undefined;
  readonly token: string | undefined;
  readonly platform: Platform;
  /** On which channels they want to be reminded, on which days and when. */
  readonly wish: {
    readonly days: "every" | "weekdays" | "some" | "never";
    readonly time: "morning" | "afternoon" | "evening";
  };
  /** The channels that they turned reminders off on, though they can be reached there. */
  readonly unwanted: readonly TouchChannel[];
}

/** How many people the numbers reach for: as many telephone numbers as nobody ever gets. */
export const MOST_PEOPLE = 900;
const SUB_PREFIX = "demo_";

const GIVEN = `Amara Mateo Yuki Ingrid Kwame Leila Tomás Priya Noah Saoirse Hiroshi Fatima Lukas Chiara Diego Aiko Elif
Jamal Sofia Mikael Zara Ravi Hannah Omar Mei Oskar Nadia Thiago Freya Anil Camille Kofi Isla Jin Valentina Emil Aisha Marco
Ananya Liam Sana Piotr Luz Nikhil Maren Youssef Clara Dae Ottilie Rafael Ines Arjun Greta Malik Paloma Soren Tala Viktor Wren
Ximena`.split(/\s+/);
const FAMILY =
  `Okafor Rivera Tanaka Lindqvist Mensah Haddad Herrera Raman Bennett Murphy Sato Zahra Brandt Conti Morales
Mori Demir Brooks Almeida Virtanen Sharif Iyer Fischer Nasser Chen Nygaard Petrova Barbosa Olsen Gupta Laurent Asante Campbell
Park Rossi Andersen Rahman Bianchi Menon Walsh Qureshi Nowak Vargas Joshi Hoffmann Amrani Novak Kim Steiner Fonseca Duarte
Kapoor Larsen Farah Ortega Dahl Reyes Sokolov Hayes Castillo`.split(/\s+/);
const ZONES = [
  "Europe/Berlin",
  "America/New_York",
  "America/Los_Angeles",
  "Europe/London",
  "Asia/Tokyo",
  "America/Sao_Paulo",
  "Asia/Kolkata",
  "Africa/Lagos",
  "Australia/Sydney",
] as const;
const AREAS = ["206", "212", "303", "312", "415", "512", "617", "702", "808"] as const;

/** What people can be reached by, in ten kinds: all ways, two of them, or a single one. */
const REACH: readonly (readonly TouchChannel[])[] = [
  ["email", "push", "sms"],
  ["email", "push"],
  ["email"],
  ["push"],
  ["email", "sms"],
  ["push", "sms"],
  ["email", "push"],
  ["sms"],
  ["email", "push", "sms"],
  ["email"],
];
const DAYS = ["weekdays", "every", "weekdays", "some", "weekdays", "every", "never"] as const;
const TIMES = ["morning", "morning", "evening", "morning", "afternoon"] as const;

export const subOf = (number: number) =>
  `${SUB_PREFIX}${plain(givenOf(number))}_${plain(familyOf(number))}_${number + 1}`;
export const isOfDemo = (sub: string) => sub.startsWith(SUB_PREFIX);

const givenOf = (number: number) => GIVEN[number % GIVEN.length]!;
/** Whole rounds of given names meet other family names. */
const familyOf = (number: number) => FAMILY[(number + 17 * Math.floor(number / GIVEN.length)) % FAMILY.length]!;
const plain = (name: string) =>
  name
    .normalize("NFD")
    .replaceAll(/[^A-Za-z]/g, "")
    .toLowerCase();

export function personAt(number: number): Person {
  const [given, family] = [givenOf(number), familyOf(number)];
  const reach = REACH[number % REACH.length]!;
  const name = `${plain(given)}.${plain(family)}`;
  // 555-0100 to 555-0199 are given to nobody, in any area.
  const phone = `+1${AREAS[Math.floor(number / 100) % AREAS.length]}55501${String(number % 100).padStart(2, "0")}`;
  return {
    number,
    sub: subOf(number),
    given,
    family,
    zone: ZONES[(number * 4) % ZONES.length]!,
    email: reach.includes("email") ? `${name}${number >= GIVEN.length ? number : ""}@example.com` : undefined,
    phone: reach.includes("sms") ? phone : undefined,
    token: reach.includes("push") ? `ExponentPushToken[demo-${plain(given)}-${number + 1}]` : undefined,
    platform: number % 3 === 0 ? "android" : "ios",
    wish: { days: DAYS[number % DAYS.length]!, time: TIMES[number % TIMES.length]! },
    unwanted: reach.length > 1 && number % 4 !== 0 ? [reach.at(-1)!] : [],
  };
}

/** The channels on which somebody can be reached, the one that they look at most first. */
export function channelsOf({ token, phone, email }: Person): readonly TouchChannel[] {
  return [
    ...(token ? ["push" as const] : []),
    ...(phone ? ["sms" as const] : []),
    ...(email ? ["email" as const] : []),
  ];
}
