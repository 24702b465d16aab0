import { mintAccessToken } from "../../infrastructure/access/service.ts";
import type { Context } from "../../jobs/context.ts";
import { registerPushTokens, unsuppressEmails } from "../../messaging/contacts/service.ts";
import type { SandboxMessage } from "../../sandbox/inbox.ts";
import { codesIn } from "../../sandbox/recipients.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import { chooseHours, join } from "./app.ts";
import { channelsOf, MOST_PEOPLE, type Person, personAt } from "./cast.ts";
import { type News, tell } from "./news.ts";

/** How fast the crowd lives: everything in times a day for the whole crowd, or in seconds. */
export interface Tempo {
  /** People who finish a session and hear how that went. */
  readonly sessions: (people: number) => number;
  readonly payments: (people: number) => number;
  readonly newcomers: (people: number) => number;
  /** People who leave a list, answer STOP, move, or take another telephone. */
  readonly whims: (people: number) => number;
  /** From when a message arrived until somebody looks at it, at least and mostly at most. */
  readonly reading: readonly [number, number];
  /** How long somebody who left stays away, at least and at most. */
  readonly away: readonly [number, number];
  /** Whether people hear of their sessions on any channel that they have, or on the one that they look at most. */
  readonly anyChannel: boolean;
  /** At this size nobody joins any more. */
  readonly mostPeople: number;
  /** The share of people who look at their telephone at that hour of their day. */
  readonly awake: (person: Person, now: number) => number;
}

interface Plan {
  readonly at: number;
  act(): Promise<unknown>;
}

const HOUR = 3600;
const CLICKS = { sms: 0.4, email: 0.25, push: 0 } as const;
const PREVIEWED = 0.1;
const ALREADY_SIGNED_IN = 0.4;
const SIGNS_IN = 0.3;

/**
 * People who receive, read, follow links, sign in, join, leave and come back. They act only when `step` is called, in the
 * time of the house's clock, and only through simulated providers and the doors that everybody uses. What they do is drawn
 * by lot; the same lots and the same house give the same lives.
 */
export class Crowd {
  readonly done: Record<string, number> = {};
  /** What somebody tried in vain, most recent last. */
  readonly troubles: unknown[] = [];
  readonly #ctx: Context;
  readonly #sandbox: Sandbox;
  readonly #random: () => number;
  readonly #tempo: Tempo;
  readonly #people: Person[];
  readonly #byAddress = new Map<string, Person>();
  #gone = false;
  #plans: Plan[] = [];
  #lastStep: number;

  constructor(
    house: { readonly ctx: Context; readonly sandbox: Sandbox },
    options: { readonly people: readonly Person[]; readonly random: () => number; readonly tempo: Tempo },
  ) {
    this.#ctx = house.ctx;
    this.#sandbox = house.sandbox;
    this.#random = options.random;
    this.#tempo = options.tempo;
    this.#people = [...options.people];
    for (const person of this.#people) this.#know(person);
    this.#lastStep = house.ctx.clock.now();
    house.sandbox.inbox.watch((message) => this.#receive(message));
  }

  get people(): readonly Person[] {
    return this.#people;
  }

  /** When the next of them has planned something. */
  get nextPlan(): number | undefined {
    return this.#plans.length === 0 ? undefined : Math.min(...this.#plans.map(({ at }) => at));
  }

  /** Nobody receives anything any more. */
  leave(): void {
    this.#gone = true;
    this.#plans = [];
  }

  /** What people do between the last step and now. */
  async step(): Promise<void> {
    const now = this.#ctx.clock.now();
    const day = Math.max(0, now - this.#lastStep) / (24 * HOUR);
    this.#lastStep = now;
    const due = this.#plans.filter(({ at }) => at <= now).sort((one, other) => one.at - other.at);
    this.#plans = this.#plans.filter(({ at }) => at > now);
    for (const { act } of due) await this.#try(act);
    const size = this.#people.length;
    await this.#try(() =>
      tell(
        this.#ctx,
        this.#several(this.#tempo.sessions(size) * day, () => this.#finished()),
      ),
    );
    await this.#try(() =>
      tell(
        this.#ctx,
        this.#several(this.#tempo.payments(size) * day, () => this.#paid()),
      ),
    );
    for (const whim of this.#several(this.#tempo.whims(size) * day, () => this.#whim())) await this.#try(whim);
    const joining = size < this.#tempo.mostPeople ? this.#times(this.#tempo.newcomers(size) * day) : 0;
    for (let one = 0; one < joining; one++) await this.#try(() => this.join());
  }

  /** Begins with a minute of everything, for whoever has just opened the dashboard: sessions, newcomers, changes of mind. */
  beginLively(): void {
    const several = () => Array.from({ length: 4 }, () => this.#finished()).filter((news) => news !== undefined);
    for (const after of [2, 15]) this.#plan(after, () => tell(this.#ctx, several()));
    for (const after of [8, 40]) this.#plan(after, () => this.join());
    const changes = [
      { after: 25, who: this.#hasMail, name: "left a list" },
      { after: 35, who: ({ phone }: Person) => phone !== undefined, name: "answered STOP" },
      { after: 50, who: ({ token }: Person) => token !== undefined, name: "opened the app again" },
    ];
    for (const { after, who, name } of changes)
      this.#plan(after, async () => this.#whim(this.#oneOf(this.#people.filter(who)), name)?.());
  }

  /** The app tells everybody something, each on the channel that they look at most, or on every one. */
  async tellAll(
    slug: string,
    how: { readonly everywhere: boolean; readonly channels?: readonly string[] },
  ): Promise<void> {
    const news = this.#people.flatMap((person) => {
      const open = channelsOf(person).filter((channel) => how.channels?.includes(channel) ?? true);
      const sessions = 2 + this.#below(6);
      const parameters = { sessions, minutes: sessions * 5 };
      return (how.everywhere ? open : open.slice(-1)).map((channel): News => ({ person, slug, channel, parameters }));
    });
    await this.#try(() => tell(this.#ctx, news));
    this.#note(slug, news.length);
  }

  /** Somebody new joins, is welcomed, and somebody hears of it. */
  async join(): Promise<void> {
    const taken = new Set(this.#people.map(({ number }) => number));
    let number = this.#people.length;
    while (taken.has(number)) number += 1;
    if (number >= MOST_PEOPLE) return;
    const person = personAt(number);
    const friend = this.#oneOf(this.#people);
    await join(this.#ctx, [person]);
    this.#people.push(person);
    this.#know(person);
    this.#note("joined");
    await tell(this.#ctx, [
      { person, slug: "welcome", channel: channelsOf(person).at(-1)! },
      ...(friend
        ? [
            {
              person: friend,
              slug: "friend_joined",
              channel: channelsOf(friend)[0]!,
              parameters: { friend: person.given },
            },
          ]
        : []),
    ]);
  }

  /** Support answers: addresses that bounced are let in again, and whoever lost a device installs the app anew. */
  async support(): Promise<void> {
    const emails = this.#people.flatMap(({ email }) => (email && this.#strikes(0.3) ? [email] : []));
    await this.#try(() => unsuppressEmails(this.#ctx, { emails }, { only: "Bounce" }));
    const owners = this.#people.flatMap(({ sub, token, platform }) =>
      token && this.#strikes(0.3) ? [{ userSub: sub, token, platform }] : [],
    );
    await this.#try(() => registerPushTokens(this.#ctx, owners));
  }

  #know(person: Person): void {
    for (const address of [person.email, person.phone, person.token])
      if (address) this.#byAddress.set(address.toLowerCase(), person);
  }

  /** Somebody got a message: perhaps a robot looks at its link, perhaps they follow it. */
  #receive(message: SandboxMessage): void {
    const person = this.#byAddress.get(message.to.toLowerCase());
    if (this.#gone || message.direction !== "out" || !person) return;
    const [code] = codesIn(message);
    if (code === undefined) return;
    const now = this.#ctx.clock.now();
    if (this.#strikes(PREVIEWED)) this.#plan(1, () => this.#sandbox.recipients.preview(code, 1));
    if (!this.#strikes(CLICKS[message.channel] * this.#tempo.awake(person, now))) return;
    const [least, most] = this.#tempo.reading;
    // Most look soon, some much later.
    const after = least + (most - least) * this.#random() ** 2;
    this.#plan(after, () => this.#follow(person, code));
    if (this.#strikes(0.1)) this.#plan(after * 2 + 120, () => this.#follow(person, code));
  }

  async #follow({ sub }: Person, code: string): Promise<void> {
    const token = (await mintAccessToken(this.#ctx, sub, HOUR))?.token;
    const signedIn = this.#strikes(ALREADY_SIGNED_IN) ? token : undefined;
    const signsIn = signedIn === undefined && token !== undefined && this.#strikes(SIGNS_IN);
    const { answered } = await this.#sandbox.recipients.click(code, {
      signedIn,
      visitor: `crl_v_${sub}`,
      ...(signsIn ? { thenLogin: { token } } : {}),
    });
    this.#note(answered === 200 ? "clicks" : "clicks on old links");
    if (signsIn) this.#note("sign-ins");
  }

  #finished(): News | undefined {
    const person = this.#whoIsAwake();
    if (!person) return undefined;
    this.#note("sessions");
    const days = 1 + this.#below(40);
    const channels = channelsOf(person);
    const channel = this.#tempo.anyChannel ? this.#oneOf(channels)! : channels[0]!;
    return { person, slug: "session_finished", channel, parameters: { days } };
  }

  #paid(): News | undefined {
    const person = this.#whoIsAwake();
    if (!person?.email) return undefined;
    this.#note("payments");
    const number = `${1000 + this.#below(9000)}`;
    return { person, slug: "payment_receipt", channel: "email", parameters: { amount: "4.90 EUR", number } };
  }

  /** Whether somebody got a mail with a link to leave by. */
  readonly #hasMail = ({ email }: Person): boolean =>
    email !== undefined &&
    this.#sandbox.recipients.received(email, { channel: "email" }).some(({ codes }) => codes.length > 0);

  #whim(person = this.#whoIsAwake(), wanted?: string): (() => Promise<unknown>) | undefined {
    if (!person) return undefined;
    const { recipients } = this.#sandbox;
    const [least, most] = this.#tempo.away;
    const away = least + (most - least) * this.#random();
    const { email, phone, token, sub, platform } = person;
    const whims: Record<string, (() => Promise<unknown>) | undefined> = {
      "left a list":
        email && this.#hasMail(person)
          ? async () => {
              await recipients.unsubscribe(email);
              this.#plan(away, () => unsuppressEmails(this.#ctx, { emails: [email] }));
            }
          : undefined,
      "answered STOP": phone
        ? async () => {
            await recipients.text(phone, "STOP");
            this.#plan(away, () => recipients.text(phone, "START"));
          }
        : undefined,
      moved: () => chooseHours(this.#ctx, person, this.#oneOf(this.#people)?.zone ?? person.zone),
      "opened the app again": token
        ? () => registerPushTokens(this.#ctx, [{ userSub: sub, token, platform }])
        : undefined,
    };
    const possible = Object.entries(whims).filter(([, act]) => act !== undefined);
    const [name, act] = possible.find(([each]) => each === wanted) ?? this.#oneOf(possible)!;
    this.#note(name);
    return act;
  }

  #whoIsAwake(): Person | undefined {
    const person = this.#oneOf(this.#people);
    return person && this.#strikes(this.#tempo.awake(person, this.#ctx.clock.now())) ? person : undefined;
  }

  #several<T>(expected: number, make: () => T | undefined): readonly T[] {
    return Array.from({ length: this.#times(expected) }, make).filter((made) => made !== undefined);
  }

  /** A whole number that is `expected` on average. */
  #times(expected: number): number {
    return Math.floor(expected) + (this.#strikes(expected % 1) ? 1 : 0);
  }

  #plan(after: number, act: () => Promise<unknown>): void {
    this.#plans.push({ at: this.#ctx.clock.now() + after, act });
  }

  /** People may fail without consequence: the link is gone, the server is busy. */
  async #try(act: () => Promise<unknown>): Promise<void> {
    try {
      await act();
    } catch (error) {
      this.troubles.push(error);
      if (this.troubles.length > 20) this.troubles.shift();
      this.#ctx.log.debug({ err: error }, "somebody of the demo tried in vain");
    }
  }

  #note(what: string, times = 1): void {
    this.done[what] = (this.done[what] ?? 0) + times;
  }

  #strikes(share: number): boolean {
    return this.#random() < share;
  }

  #below(limit: number): number {
    return Math.floor(this.#random() * limit);
  }

  #oneOf<T>(from: readonly T[]): T | undefined {
    return from[this.#below(from.length)];
  }
}
