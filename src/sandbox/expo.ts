import { z } from "zod";
import type { Clock } from "../kernel/clock.ts";
import type { Agenda } from "./agenda.ts";
import type { Answer, Asked } from "./exchange.ts";
import { type Met, meetFate } from "./fates.ts";
import { EXPO_MESSAGE_FAULTS, EXPO_REQUEST_FAULTS, isOut, strike, takeFailure, takeTime } from "./faults.ts";
import { Gauge } from "./gauge.ts";
import type { Inbox, SandboxMessage } from "./inbox.ts";
import type { ExpoKnobs, Knobs } from "./knobs.ts";
import { seededHex } from "./seeded-random.ts";

const SEND = "/--/api/v2/push/send";
const RECEIPTS = "/--/api/v2/push/getReceipts";
const MOST_MESSAGES = 100;
const MOST_RECEIPTS = 1000;
const LARGEST_MESSAGE = 4096;
const KEPT_SECONDS = 86_400;
const HOME_PROJECT = "@sandbox/home";
const MALFORMED: Readonly<Record<string, ExpoKnobs["malformed"]>> = {
  malformed_json: "json",
  malformed_structure: "structure",
  malformed_count: "count",
};
const TOKEN = /^Expo(nent)?PushToken\[[^\]]+\]$/;

const Push = z.looseObject({ to: z.union([z.string(), z.array(z.string()).min(1)]) });
const Wanted = z.object({ ids: z.array(z.string()) });

interface Receipt {
  readonly message: SandboxMessage;
  readonly createdAt: number;
}

type Ticket =
  | { status: "ok"; id: string }
  | { status: "error"; message: string; details: { error: string; expoPushToken: string } };

/**
 * Expo's push service: tickets for messages, and receipts for tickets.
 *
 * A message is accepted with its ticket. Its receipt appears `receiptDelaySeconds` later and is kept for a day. Whether it
 * tells of success is settled when the message is accepted, by its token and the knobs of that moment; an action of the
 * inbox may change it until then.
 */
export class ExpoSimulator {
  readonly #clock: Clock;
  readonly #agenda: Agenda;
  readonly #knobs: Knobs;
  readonly #inbox: Inbox;
  readonly #random: () => number;
  readonly #accessToken: string | undefined;
  readonly #gauge: Gauge;
  readonly #receipts = new Map<string, Receipt>();

  constructor(plan: {
    clock: Clock;
    agenda: Agenda;
    knobs: Knobs;
    inbox: Inbox;
    random: () => number;
    accessToken?: string;
  }) {
    this.#clock = plan.clock;
    this.#agenda = plan.agenda;
    this.#knobs = plan.knobs;
    this.#inbox = plan.inbox;
    this.#random = plan.random;
    this.#accessToken = plan.accessToken;
    this.#gauge = new Gauge(plan.clock, 1);
    // Receipts of what an earlier process took are still asked for, a quarter of an hour later.
    for (const message of plan.inbox.all())
      if (message.provider === "expo") this.#receipts.set(message.provider_id, { message, createdAt: message.at });
  }

  async answer(asked: Asked): Promise<Answer> {
    if (asked.path !== SEND && asked.path !== RECEIPTS) return undefined;
    if (asked.method !== "POST") return refusal(405, "METHOD_NOT_ALLOWED", "Only POST is understood here.");
    const knobs = this.#knobs.expo;
    if (knobs.latencyMs > 0) await this.#agenda.pause(knobs.latencyMs / 1000);
    if (isOut(knobs.outage, this.#clock.now())) return refusal(503, "SERVICE_UNAVAILABLE", "The service is down.");
    const failure = takeFailure(knobs);
    if (failure) return refusal(failure.status, "SANDBOX_FAULT", "A fault that was asked for.");
    if (knobs.errorRate > 0 && this.#random() < knobs.errorRate)
      return refusal(500, "INTERNAL_SERVER_ERROR", "A fault that happens now and then.");
    const fault = strike(knobs.faultRates, EXPO_REQUEST_FAULTS, this.#random);
    if (fault === "reset") return "cut";
    if (fault === "silence") return fault;
    if (/^\d/.test(fault ?? "")) return refusal(Number(fault), "SANDBOX_FAULT", "A fault that happens now and then.");
    if (this.#accessToken !== undefined && asked.headers.authorization !== `Bearer ${this.#accessToken}`)
      return refusal(401, "UNAUTHORIZED", "The bearer token is invalid.");
    const body = parsed(asked.body);
    if (body === undefined) return refusal(400, "VALIDATION_ERROR", "The body is not JSON.");
    const malformed = knobs.malformed ?? MALFORMED[fault ?? ""] ?? null;
    if (asked.path === RECEIPTS) return this.#getReceipts(body, malformed);
    return this.#send(body, malformed, fault === "cut_after_accept");
  }

  /** The receipt becomes visible this many seconds from now, with success unless it is to fail. */
  settle(message: SandboxMessage, plan: { afterSeconds?: number; error?: string } = {}): void {
    const at = this.#clock.now() + (plan.afterSeconds ?? 0);
    this.#inbox.redirect(message, [
      plan.error === undefined ? { status: "delivered", at } : { status: "failed", at, error: plan.error },
    ]);
  }

  #send(body: unknown, malformed: ExpoKnobs["malformed"], cut: boolean): Answer {
    const knobs = this.#knobs.expo;
    const batch = z.array(Push).safeParse(Array.isArray(body) ? body : [body]);
    if (!batch.success) return refusal(400, "VALIDATION_ERROR", "Every message needs a receiver in `to`.");
    const pushes = batch.data.flatMap(({ to, ...rest }) => [to].flat().map((token) => ({ ...rest, to: token })));
    if (pushes.length > MOST_MESSAGES)
      return refusal(400, "PUSH_TOO_MANY_NOTIFICATIONS", `At most ${MOST_MESSAGES} messages fit into a request.`);
    const mixed = this.#mixedProjects(pushes.map(({ to }) => to));
    if (mixed) return mixed;
    if (!this.#gauge.admit(pushes.length, knobs.ratePerSecond))
      return refusal(429, "TOO_MANY_REQUESTS", "Too many notifications in a second.");
    const fates = pushes.map(({ to }) => meetFate(this.#knobs.recipients, to));
    if (fates.some((fate) => fate?.kind === "transient"))
      return refusal(503, "SERVICE_UNAVAILABLE", "One of these devices cannot be served right now.");
    const tickets = pushes.map((push, at) => this.#accept(push, fates[at]));
    if (takeTime(knobs, "dropConnectionAfterAccept") || cut) return "cut";
    switch (malformed) {
      case "json":
        return { status: 200, text: '{"data":[{"status":"o', headers: { "content-type": "application/json" } };
      case "structure":
        return { status: 200, json: { data: { tickets } } };
      case "count":
        return { status: 200, json: { data: tickets.slice(1) } };
      case "errors":
        return { status: 200, json: { data: tickets, errors: [{ code: "SANDBOX_FAULT", message: "Odd." }] } };
      case "item":
        return { status: 200, json: { data: tickets.map(() => ({ status: "perhaps" })) } };
      default:
        return { status: 200, json: { data: Array.isArray(body) || tickets.length > 1 ? tickets : tickets[0] } };
    }
  }

  /** Expo takes no request for several of its projects at once, and says which token belongs to which. */
  #mixedProjects(tokens: readonly string[]): Answer {
    const { projects } = this.#knobs.expo;
    const groups: Record<string, string[]> = {};
    for (const token of tokens) {
      const project = projects[token] ?? HOME_PROJECT;
      groups[project] = [...(groups[project] ?? []), token];
    }
    if (Object.keys(groups).length < 2) return undefined;
    const error = {
      code: "PUSH_TOO_MANY_EXPERIENCE_IDS",
      message: "Several projects in one request.",
      details: groups,
    };
    return { status: 400, json: { errors: [error] } };
  }

  #accept(push: { to: string } & Record<string, unknown>, fate: Met | undefined): Ticket {
    const knobs = this.#knobs.expo;
    const token = push.to;
    const fault = strike(knobs.messageFaultRates, EXPO_MESSAGE_FAULTS, this.#random);
    const unregistered = !TOKEN.test(token) || /\[sandbox-unregistered-/.test(token) || fault === "ticket_error";
    const error = knobs.ticketErrors[token] ?? (unregistered ? "DeviceNotRegistered" : undefined);
    if (error !== undefined) {
      const message = `"${token}" is not a registered push notification recipient`;
      return { status: "error", message, details: { error, expoPushToken: token } };
    }
    const id = seededUuid(this.#random);
    const now = this.#clock.now();
    const failing =
      knobs.receiptErrors[token] ??
      /\[sandbox-receipt-([A-Za-z]+)-/.exec(token)?.[1] ??
      (Buffer.byteLength(JSON.stringify(push)) > LARGEST_MESSAGE ? "MessageTooBig" : undefined) ??
      (fate?.kind === "permanent" ? "DeviceNotRegistered" : undefined) ??
      (fault === "receipt_error" ? "MessageRateExceeded" : undefined);
    const never =
      fate?.kind === "never" ||
      fault === "receipt_never" ||
      knobs.receiptNever.includes(token) ||
      /\[sandbox-slow-/.test(token);
    const at = now + (fate?.kind === "after" ? fate.seconds : knobs.receiptDelaySeconds);
    const outcome = failing === undefined ? { status: "delivered", at } : { status: "failed", at, error: failing };
    const message = this.#inbox.add({
      channel: "push",
      direction: "out",
      provider: "expo",
      provider_id: id,
      to: token,
      from: null,
      subject: textOf(push.title),
      text: textOf(push.body) ?? "",
      moments: [{ status: "accepted", at: now }, ...(never ? [] : [outcome])],
      fields: push,
    });
    this.#receipts.set(id, { message, createdAt: now });
    for (const [old, { createdAt }] of this.#receipts) {
      if (now - createdAt <= KEPT_SECONDS) break;
      this.#receipts.delete(old);
    }
    return { status: "ok", id };
  }

  #getReceipts(body: unknown, malformed: ExpoKnobs["malformed"]): Answer {
    const wanted = Wanted.safeParse(body);
    if (!wanted.success) return refusal(400, "VALIDATION_ERROR", "The body needs a list `ids`.");
    if (wanted.data.ids.length > MOST_RECEIPTS)
      return refusal(400, "PUSH_TOO_MANY_RECEIPTS", `At most ${MOST_RECEIPTS} receipts fit into a request.`);
    const receipts = wanted.data.ids.flatMap((id) => {
      const receipt = this.#receiptOf(id);
      return receipt === undefined ? [] : [[id, receipt] as const];
    });
    switch (malformed) {
      case "json":
        return { status: 200, text: '{"data":{', headers: { "content-type": "application/json" } };
      case "structure":
        return { status: 200, json: { data: receipts } };
      case "count":
        return { status: 200, json: { data: Object.fromEntries(receipts.slice(1)) } };
      case "errors":
        return { status: 200, json: { data: {}, errors: [{ code: "SANDBOX_FAULT", message: "Odd." }] } };
      case "item":
        return { status: 200, json: { data: Object.fromEntries(wanted.data.ids.map((id) => [id, "perhaps"])) } };
      default:
        return { status: 200, json: { data: Object.fromEntries(receipts) } };
    }
  }

  #receiptOf(id: string) {
    const kept = this.#receipts.get(id);
    if (!kept || this.#clock.now() - kept.createdAt > KEPT_SECONDS) return undefined;
    const { status, error } = this.#inbox.statusOf(kept.message);
    if (status === "delivered") return { status: "ok" };
    if (status !== "failed") return undefined;
    return { status: "error", message: `The notification could not be delivered: ${error}`, details: { error } };
  }
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString("utf8"));
  } catch {
    return undefined;
  }
}

function refusal(status: number, code: string, message: string): Answer {
  return { status, json: { errors: [{ code, message, isTransient: status >= 500 || status === 429 }] } };
}

function textOf(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

function seededUuid(random: () => number): string {
  return [8, 4, 4, 4, 12].map((digits) => seededHex(random, digits)).join("-");
}
