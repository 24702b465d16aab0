import { domains } from "../../src/domains.ts";
import { mintAccessToken } from "../../src/infrastructure/access/service.ts";
import {
  addEmails,
  addPhones,
  registerPushTokens,
  unsuppressEmails,
  unsuppressPhones,
} from "../../src/messaging/contacts/service.ts";
import { WEEKDAYS } from "../../src/messaging/reminders/window.ts";
import { createUser } from "../../src/people/users/service.ts";
import { codesIn } from "../../src/sandbox/recipients.ts";
import type { Weather } from "./days.ts";
import type { PeopleHouse } from "./people-house.ts";

/** Far east and far west, both hemispheres, halves of hours, and those that change their clocks in these weeks. */
export const ZONES = [
  "America/Los_Angeles",
  "America/New_York",
  "America/Sao_Paulo",
  "America/St_Johns",
  "Europe/London",
  "Europe/Berlin",
  "Africa/Cairo",
  "Asia/Kolkata",
  "Asia/Tokyo",
  "Australia/Lord_Howe",
  "Pacific/Kiritimati",
  "Pacific/Pago_Pago",
] as const;

const DAY = 86_400;
/** Of those who are restless, so many do each of these things on any day. */
const DAILY = 0.05;

export interface Person {
  readonly sub: string;
  readonly token: string;
  zone: string;
  readonly phones: string[];
  readonly emails: string[];
  readonly tokens: string[];
  /** Changes their mind all the time; the others only read and click. */
  readonly restless: boolean;
}

/** A use of a link, as the person remembers it. */
export interface Click {
  readonly code: string;
  readonly uid: string;
  readonly at: number;
  /** Not the second of two in a moment. */
  readonly counts: boolean;
  login: boolean;
}

/** Everybody, and what they do from one hour to the next. The same seed gives the same lives. */
export class Population {
  readonly people: Person[] = [];
  readonly clicks: Click[] = [];
  readonly done: Record<string, number> = {};
  /** Uses of links that do not exist any more. */
  missed = 0;
  readonly #house: PeopleHouse;
  readonly #weather: Weather;
  readonly #plans: { readonly at: number; readonly act: () => Promise<void> }[] = [];
  readonly #lastUse = new Map<string, number>();
  #addresses = 0;

  constructor(house: PeopleHouse, weather: Weather) {
    this.#house = house;
    this.#weather = weather;
    house.sandbox.inbox.watch((message) => {
      if (message.direction === "out") this.#read(codesIn(message));
    });
  }

  async settle(count: number): Promise<void> {
    for (let at = 0; at < count; at++) {
      const zone = ZONES[at % ZONES.length]!;
      const sub = `person-${at}`;
      const { ctx } = this.#house;
      await createUser(ctx, domains, { sub, timezone: zone, given_name: `Ada${at}` });
      const { token } = (await mintAccessToken(ctx, sub, 100 * DAY))!;
      const person = { sub, token, zone, phones: [], emails: [], tokens: [], restless: at % 3 === 0 };
      this.people.push(person);
    }
    const { ctx } = this.#house;
    const having = (share: number) => this.people.filter(() => this.#weather.strikes(share));
    await addPhones(
      ctx,
      [...having(0.6), ...having(0.1)].map((person) => this.#phone(person)),
    );
    await addEmails(
      ctx,
      [...having(0.7), ...having(0.1)].map((person) => this.#email(person)),
    );
    await registerPushTokens(
      ctx,
      [...having(0.5), ...having(0.2)].map((person) => this.#device(person)),
    );
    for (const person of this.people) if (this.#weather.strikes(0.6)) await this.#choose(person);
  }

  /** What people do until now that they planned, and what comes to their minds. */
  async act(seconds: number): Promise<void> {
    const now = this.#house.base.clock.now();
    for (let at = this.#plans.length - 1; at >= 0; at--)
      if (this.#plans[at]!.at <= now) await this.#plans.splice(at, 1)[0]!.act();
    const share = (DAILY * seconds) / DAY;
    for (const person of this.people) {
      if (!person.restless) continue;
      for (const [name, act] of Object.entries(this.#whims))
        if (this.#weather.strikes(share)) {
          await act(person);
          this.done[name] = (this.done[name] ?? 0) + 1;
        }
    }
  }

  /** Support answers: whoever bounced is let in again, and whoever lost their devices installs the app anew. */
  async support(): Promise<void> {
    const { ctx } = this.#house;
    await unsuppressEmails(ctx, {
      emails: this.people.flatMap(({ emails }) => (this.#weather.strikes(0.5) ? emails : [])),
    });
    const stopped = this.#house.sandbox.twilio.stopped;
    const numbers = this.people.flatMap(({ phones }) => phones.filter((phone) => !stopped.has(phone)));
    await unsuppressPhones(ctx, { phoneNumbers: numbers.filter(() => this.#weather.strikes(0.5)) });
    const rows = await this.#house.query<{ sub: string; devices: number }>(
      `select users.sub, count(token.id)::integer as devices from users
       left join user_push_tokens as token on token.user_id = users.id group by users.sub`,
    );
    const without = new Set(rows.flatMap(({ sub, devices }) => (devices === 0 ? [sub] : [])));
    const owners = this.people.filter(({ sub, tokens }) => tokens.length > 0 && without.has(sub));
    await registerPushTokens(
      ctx,
      owners.map((person) => this.#device(person)),
    );
  }

  readonly #whims: Readonly<Record<string, (person: Person) => Promise<void>>> = {
    choose: (person) => this.#choose(person),
    move: async (person) => {
      person.zone = this.#weather.oneOf(ZONES);
      await this.#choose(person);
    },
    newPhone: async (person) => void (await addPhones(this.#house.ctx, [this.#phone(person)])),
    newEmail: async (person) => void (await addEmails(this.#house.ctx, [this.#email(person)])),
    newDevice: async (person) => void (await registerPushTokens(this.#house.ctx, [this.#device(person)])),
    unsubscribe: async (person) => {
      const { emails, phones, push_tokens } = (await this.#as(person, "GET", "users/me/contact_methods")).json();
      const uids = [...emails, ...phones, ...push_tokens].map(({ uid }: { uid: string }) => uid);
      if (uids.length === 0) return;
      const path = `users/me/contact_methods/${this.#weather.oneOf(uids)}/disable_notifications`;
      expectStatus(await this.#as(person, "POST", path), 204);
    },
    leave: async (person) => {
      const held = (await this.#as(person, "GET", "users/me/daily_reminders")).json();
      const uids = Object.values(held).flatMap((each) => (each ? [(each as { uid: string }).uid] : []));
      if (uids.length === 0) return;
      expectStatus(
        await this.#as(person, "DELETE", "users/me/daily_reminders", { uid: this.#weather.oneOf(uids) }),
        204,
      );
    },
    unsubscribeSignedOut: async (person) => {
      const { recipients } = this.#house.sandbox;
      const email = person.emails.find((each) => recipients.received(each).some(({ codes }) => codes.length > 1));
      // The link may have gone with a mail that is believed to have failed.
      if (email) await recipients.unsubscribe(email).catch(() => {});
    },
    stop: async ({ phones }) => {
      const phone = phones.at(-1);
      if (!phone) return;
      await this.#house.sandbox.recipients.text(phone, "STOP");
      this.#plan(DAY / 2 + this.#weather.below(DAY), async () => {
        await this.#house.sandbox.recipients.text(phone, "START");
      });
    },
  };

  /** Somebody reads a message with these links: robots look first, and perhaps the person follows one of them. */
  #read(codes: readonly string[]): void {
    const code = codes[0];
    if (code === undefined) return;
    const weather = this.#weather;
    if (weather.strikes(0.2)) this.#plan(1, () => this.#house.sandbox.recipients.preview(code, 1 + weather.below(2)));
    if (!weather.strikes(0.5)) return;
    const soon = weather.strikes(0.9) ? weather.below(6 * 3600) : weather.below(2 * DAY);
    this.#plan(soon, () => this.click(code));
    if (weather.strikes(0.1)) this.#plan(soon, () => this.click(code));
    if (weather.strikes(0.1)) this.#plan(soon + weather.below(DAY), () => this.click(code));
  }

  /** Somebody follows this link now. */
  async click(code: string): Promise<void> {
    const weather = this.#weather;
    const person = weather.oneOf(this.people);
    const now = this.#house.base.clock.now();
    const { recipients } = this.#house.sandbox;
    const signedIn = weather.strikes(0.3) ? person.token : undefined;
    const visitor = weather.strikes(0.5) ? `crl_v_${person.sub}` : undefined;
    const { answered, clickUid } = await recipients.click(code, { signedIn, visitor });
    if (answered !== 200 || clickUid === null) {
      this.missed += 1;
      return;
    }
    const click = { code, uid: clickUid, at: now, counts: now - (this.#lastUse.get(code) ?? 0) > 60, login: false };
    this.#lastUse.set(code, now);
    this.clicks.push(click);
    if (signedIn !== undefined || !weather.strikes(0.4)) return;
    this.#plan(weather.strikes(0.5) ? 0 : weather.below(3 * 3600), async () => {
      const body = { code, uid: click.uid };
      expectStatus(await this.#as(person, "POST", "notifications/post_login", body), 202);
      click.login = true;
    });
  }

  async #choose(person: Person): Promise<void> {
    const weather = this.#weather;
    const start = 3600 * weather.below(21);
    const explicit = { type: "explicit", start, end: start + 3600 * (1 + weather.below(2)) };
    const preset = { type: "preset", preset: weather.oneOf(["unspecified", "morning", "afternoon", "evening"]) };
    expectStatus(
      await this.#as(person, "POST", "users/me/attributes/notification_time", {
        channel: weather.oneOf(["email", "sms", "push", "all"]),
        days_of_week: weather.strikes(0.5) ? WEEKDAYS : WEEKDAYS.filter(() => weather.strikes(0.6)),
        time_range: weather.strikes(0.5) ? explicit : preset,
        timezone: person.zone,
        timezone_technique: "app",
      }),
      202,
    );
  }

  #plan(after: number, act: () => Promise<void>): void {
    this.#plans.push({ at: this.#house.base.clock.now() + after, act });
  }

  #as({ token }: Person, method: string, path: string, body?: object) {
    return this.#house.call(method, `/api/1/${path}`, { token, ...(body ? { body } : {}) });
  }

  #phone(person: Person) {
    const phoneNumber = `+1415${String(2_000_000 + ++this.#addresses)}`;
    person.phones.push(phoneNumber);
    return { userSub: person.sub, phoneNumber, verified: true, receivesNotifications: true, cause: "verify" as const };
  }

  #email(person: Person) {
    const email = `ada.${++this.#addresses}@example.com`;
    person.emails.push(email);
    return { userSub: person.sub, email, verified: true, cause: "identity" as const };
  }

  #device(person: Person) {
    const token = `ExponentPushToken[device-${++this.#addresses}]`;
    person.tokens.push(token);
    return { userSub: person.sub, token, platform: "ios" as const };
  }
}

function expectStatus({ statusCode, body }: { statusCode: number; body: string }, expected: number): void {
  if (statusCode !== expected) throw new Error(`answered ${statusCode} instead of ${expected}: ${body}`);
}
