import type { Clock } from "../kernel/clock.ts";
import type { Agenda } from "./agenda.ts";
import { callWebhook } from "./caller.ts";
import { strike, TWILIO_CALLBACK_FAULTS } from "./faults.ts";
import type { Inbox, Moment, SandboxMessage } from "./inbox.ts";
import type { Knobs } from "./knobs.ts";
import { twilioSignature } from "./twilio-signature.ts";

export type Form = Readonly<Record<string, string>>;

/** A status callback that is due when its moment is; nothing is sent once the message was led elsewhere. */
interface Planned {
  readonly message: SandboxMessage;
  readonly moment: Moment;
  readonly url: string;
  readonly fields: Form;
  readonly last: boolean;
  /** From 0 to 1, drawn when it was planned: what strikes then does not depend on how fast callbacks are answered. */
  readonly drawn: number;
}

/** Signed posts to the house, and the ways in which they go wrong. */
export class TwilioCallbacks {
  readonly #clock: Clock;
  readonly #agenda: Agenda;
  readonly #knobs: Knobs;
  readonly #inbox: Inbox;
  readonly #authToken: string;
  readonly #random: () => number;
  /** By sid: a callback that waits for its successor to overtake it. */
  readonly #held = new Map<string, Planned>();

  constructor(plan: {
    clock: Clock;
    agenda: Agenda;
    knobs: Knobs;
    inbox: Inbox;
    random: () => number;
    authToken: string;
  }) {
    this.#clock = plan.clock;
    this.#agenda = plan.agenda;
    this.#knobs = plan.knobs;
    this.#inbox = plan.inbox;
    this.#authToken = plan.authToken;
    this.#random = plan.random;
  }

  /** Enters one callback for each moment; the mode that holds when a moment comes decides what is sent. */
  plan(message: SandboxMessage, moments: readonly Moment[], url: string, fieldsOf: (moment: Moment) => Form): void {
    const draws = Object.keys(this.#knobs.twilio.callbackFaultRates).length > 0;
    moments.forEach((moment, index) => {
      const drawn = draws ? this.#random() : 1;
      const planned = { message, moment, url, fields: fieldsOf(moment), last: index === moments.length - 1, drawn };
      this.#agenda.at(moment.at, message.provider_id, () => this.#due(planned));
    });
  }

  /** Posts a form with its signature and answers the status. */
  async post(url: string, fields: Form, options: { badSignature?: boolean } = {}): Promise<number | null> {
    const right = twilioSignature(this.#authToken, url, fields);
    const signature = options.badSignature ? twilioSignature(`${this.#authToken}?`, url, fields) : right;
    return callWebhook(this.#agenda, url, new URLSearchParams(fields).toString(), {
      "content-type": "application/x-www-form-urlencoded; charset=UTF-8",
      "user-agent": "TwilioProxy/1.1",
      "x-twilio-signature": signature,
    });
  }

  async #due(planned: Planned): Promise<void> {
    const { message, moment } = planned;
    if (!message.moments.includes(moment)) return;
    const knobs = this.#knobs.twilio;
    const drawn = strike(knobs.callbackFaultRates, TWILIO_CALLBACK_FAULTS, () => planned.drawn);
    switch (knobs.callbacks === "on" ? drawn : knobs.callbacks) {
      case "off":
        return;
      case "delay":
        // On a thread of its own, so that later steps wait for their own time only.
        return this.#agenda.at(this.#clock.now() + knobs.callbackDelaySeconds, `late ${message.provider_id}`, () =>
          this.#send(planned),
        );
      case "duplicate":
        await this.#send(planned);
        return this.#send(planned);
      case "reorder":
        return this.#overtake(planned);
      case "badSignature":
        return this.#send(planned, { badSignature: true });
      case "blankField":
        return this.#send({ ...planned, fields: { ...planned.fields, ErrorCode: planned.fields.ErrorCode ?? "" } });
      default:
        return this.#send(planned);
    }
  }

  async #overtake(planned: Planned): Promise<void> {
    const sid = planned.message.provider_id;
    const held = this.#held.get(sid);
    if (!held && !planned.last) return void this.#held.set(sid, planned);
    await this.#send(planned);
    if (!held) return;
    this.#held.delete(sid);
    await this.#send(held);
  }

  async #send({ message, moment, url, fields }: Planned, options: { badSignature?: boolean } = {}): Promise<void> {
    const at = this.#clock.now();
    const answered = await this.post(url, fields, options);
    this.#inbox.heard(message, { kind: moment.status, url, at, answered });
  }
}
