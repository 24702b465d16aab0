import type { Context } from "../../jobs/context.ts";
import { CarillonError } from "../../kernel/errors.ts";
import { type Destination, destinationsOf } from "../contacts/service.ts";
import { attemptsFor } from "../email/service.ts";
import { pushEntries } from "../push/service.ts";
import { smsEntries } from "../sms/service.ts";
import { DailyCap } from "./daily-cap.ts";
import { type LogEntry, METHOD_OF, TOUCH_CHANNELS, type TouchChannel, type TouchEntry } from "./entries.ts";
import { MissingParameter } from "./format.ts";
import { faultOfParameters, type TouchPoint } from "./point.ts";
import { type HeldState, pointsBySlug, type StateKey, stateName, statesOf } from "./point-store.ts";
import { type RenderedMessages, renderMessage } from "./render.ts";
import { keepsState, select } from "./selection.ts";
import { settings } from "./settings.ts";
import { stepUid, trailOf } from "./trail.ts";

export type Outcome = "stale" | "improper" | "unreachable" | "reachable";

/** What one touch leads to. */
export interface Plan {
  readonly touch: TouchEntry;
  readonly outcome: Outcome;
  /** The entries of its messages, in the form of their channel. */
  readonly messages: readonly { readonly uid: string }[];
  readonly rows: readonly LogEntry[];
}

/** Why a touch cannot be put into words. */
class Improper extends Error {}

/** States as they are while touches of one batch are planned one after the other. */
interface States {
  readonly held: Map<string, HeldState & { readonly stored: boolean }>;
  readonly changed: Map<string, { readonly key: StateKey; readonly base: number | undefined; state: unknown }>;
}

/**
 * Decides what becomes of touches: whom they reach, with which words. Everything is read before anything is decided, with
 * a query for the touch points, one for each channel's addresses and one for the states; nothing is written.
 */
export class Planner {
  readonly #ctx: Context;
  readonly #points = new Map<string, TouchPoint | undefined>();
  readonly #warned = new Set<string>();

  constructor(ctx: Context) {
    this.#ctx = ctx;
  }

  /** How many touch points were looked at, those that do not exist included. */
  get points(): number {
    return this.#points.size;
  }

  async plan(touches: readonly TouchEntry[]): Promise<readonly Plan[]> {
    const ctx = this.#ctx;
    const now = ctx.clock.now();
    const fresh = touches.filter((touch) => touch.queued_at >= now - ctx.config.get(settings.staleAfter));
    await this.#learn(fresh);
    const [destinations, states, cap] = await Promise.all([
      this.#destinations(fresh),
      this.#states(fresh),
      DailyCap.open(ctx, fresh),
    ]);
    const isFresh = new Set(fresh);
    const plans = touches.map((touch): Plan => {
      if (!isFresh.has(touch)) return this.#ended(touch, "stale", { type: "send_stale" }, now);
      return this.#one(touch, destinations[touch.channel].get(touch.user_sub) ?? [], { ...states, cap }, now);
    });
    return this.#withStates(plans, states, now);
  }

  async #learn(touches: readonly TouchEntry[]): Promise<void> {
    const unknown = [...new Set(touches.map((touch) => touch.touch_point_event_slug))].filter(
      (slug) => !this.#points.has(slug),
    );
    const found = await pointsBySlug(this.#ctx, unknown);
    for (const slug of unknown) this.#points.set(slug, found.get(slug));
  }

  async #destinations(
    touches: readonly TouchEntry[],
  ): Promise<Readonly<Record<TouchChannel, ReadonlyMap<string, readonly Destination[]>>>> {
    const asked = TOUCH_CHANNELS.map((channel) => {
      const subs = new Set(touches.flatMap((touch) => (touch.channel === channel ? [touch.user_sub] : [])));
      return destinationsOf(this.#ctx, METHOD_OF[channel], [...subs]);
    });
    const [push, sms, email] = await Promise.all(asked);
    return { push: push!, sms: sms!, email: email! };
  }

  async #states(touches: readonly TouchEntry[]): Promise<States> {
    const asked = new Map<string, StateKey>();
    for (const touch of touches) {
      const point = this.#points.get(touch.touch_point_event_slug);
      if (!point || !keepsState(point.selection_strategy)) continue;
      const key = keyOf(touch, point);
      asked.set(stateName(key), key);
    }
    const held = await statesOf(this.#ctx, [...asked.values()]);
    return {
      held: new Map([...held].map(([name, state]) => [name, { ...state, stored: true }])),
      changed: new Map(),
    };
  }

  #one(
    touch: TouchEntry,
    destinations: readonly Destination[],
    { cap, ...states }: States & { readonly cap: DailyCap | undefined },
    now: number,
  ): Plan {
    try {
      const { message, remember } = this.#words(touch, states);
      if (destinations.length === 0) return this.#ended(touch, "unreachable", { type: "send_unreachable" }, now);
      if (cap?.isReached(touch)) {
        const reason = `the person got ${cap.limit} by ${touch.channel} today, and no more are sent`;
        return this.#ended(touch, "unreachable", { type: "send_unreachable", reason }, now);
      }
      const attempt = attemptUid(touch);
      const messages = this.#messages(touch, attempt, message, destinations);
      remember();
      cap?.count(touch);
      return {
        touch,
        outcome: "reachable",
        messages,
        rows: [
          ...this.#attempt(touch, attempt, now),
          ...this.#step(touch, now, {
            type: "send_reachable",
            parent: attempt,
            message,
            destinations: destinations.map(({ address }) => address),
          }),
        ],
      };
    } catch (error) {
      if (!(error instanceof Improper)) throw error;
      this.#warn(touch, error.message);
      return this.#ended(touch, "improper", { type: "send_event_improper", reason: error.message }, now);
    }
  }

  /** What the person is told, and how to remember that they were. */
  #words(touch: TouchEntry, states: States) {
    const point = this.#points.get(touch.touch_point_event_slug);
    if (!point) throw new Improper("there is no touch point with this slug");
    const candidates = point.messages[touch.channel];
    if (candidates.length === 0) throw new Improper(`the touch point has no message for ${touch.channel}`);
    const fault = faultOfParameters(point.event_schema, touch.event_parameters);
    if (fault) throw new Improper(`the parameters do not fit: ${fault}`);
    const key = keyOf(touch, point);
    const name = stateName(key);
    const held = states.held.get(name);
    const reset = touch.event_parameters.ss_reset === true;
    const chosen = select(point.selection_strategy, candidates, held?.state, { reset });
    const message = this.#rendered(touch, candidates[chosen.at]!);
    const remember = () => {
      if (chosen.state === undefined) return;
      const base = states.changed.get(name)?.base ?? (held?.stored ? held.version : undefined);
      states.changed.set(name, { key, base, state: chosen.state });
      states.held.set(name, { state: chosen.state, version: held?.version ?? 1, stored: held?.stored ?? false });
    };
    return { message, remember };
  }

  #rendered(touch: TouchEntry, message: TouchPoint["messages"][TouchChannel][number]) {
    try {
      return renderMessage(touch.channel, message as never, touch.event_parameters) as RenderedMessages[TouchChannel];
    } catch (error) {
      if (error instanceof MissingParameter) throw new Improper(error.message);
      throw error;
    }
  }

  /** One entry for each destination. What the channel refuses cannot be sent to anybody. */
  #messages(
    touch: TouchEntry,
    attempt_uid: string,
    message: RenderedMessages[TouchChannel],
    destinations: readonly Destination[],
  ): readonly { readonly uid: string }[] {
    const { uid: touch_uid, user_sub, channel } = touch;
    const touch_point_uid = this.#points.get(touch.touch_point_event_slug)!.uid;
    const jobs = {
      failureJob: { name: `runners.touch.${channel}_failure_handler`, kwargs: { attempt_uid, touch_uid, user_sub } },
      successJob: {
        name: `runners.touch.${channel}_success_handler`,
        kwargs: { attempt_uid, touch_point_uid, touch_uid, user_sub },
      },
    };
    try {
      if ("template" in message)
        return attemptsFor(
          this.#ctx,
          destinations.map(({ address: email }) => ({
            email,
            subject: message.subject,
            template: message.template,
            parameters: message.template_parameters,
            ...jobs,
          })),
        );
      if ("title" in message)
        return pushEntries(
          this.#ctx,
          destinations.map(({ address: pushToken }) => ({ pushToken, contents: message, ...jobs })),
        );
      return smsEntries(
        this.#ctx,
        destinations.map(({ address: phoneNumber }) => ({ phoneNumber, body: message.body, ...jobs })),
      );
    } catch (error) {
      if (error instanceof CarillonError && error.status < 500) throw new Improper(error.message);
      throw error;
    }
  }

  #ended(touch: TouchEntry, outcome: Outcome, event: { type: string; reason?: string }, now: number): Plan {
    const attempt = attemptUid(touch);
    const rows = [...this.#attempt(touch, attempt, now), ...this.#step(touch, now, { ...event, parent: attempt })];
    return { touch, outcome, messages: [], rows };
  }

  #attempt(touch: TouchEntry, attempt: string, now: number): readonly LogEntry[] {
    const { uid, queued_at, channel, touch_point_event_slug: event, event_parameters, user_sub: userSub } = touch;
    const step = { type: "send_attempt", touch_uid: uid, queued_at, channel, event, event_parameters };
    return trailOf(this.#ctx, { uid: attempt, userSub, event: step, at: now }, now);
  }

  #step(touch: TouchEntry, now: number, event: { type: string; [field: string]: unknown }): readonly LogEntry[] {
    return trailOf(this.#ctx, { uid: stepUid(touch.uid, event.type), userSub: touch.user_sub, event, at: now }, now);
  }

  /** Each state that changed is written once, with the last touch that changed it. */
  #withStates(plans: readonly Plan[], states: States, now: number): readonly Plan[] {
    const rows = [...states.changed.values()].map(({ key, base, state }): LogEntry => {
      const { pointUid: touch_point_uid, userSub: user_sub, channel } = key;
      const fields = { touch_point_uid, user_sub, channel, state };
      const table = "user_touch_point_states" as const;
      return base === undefined
        ? { table, action: "insert", fields, queued_at: now }
        : { table, action: "update", expected_version: base, fields, queued_at: now };
    });
    const last = plans.findLastIndex(({ outcome }) => outcome === "reachable");
    return rows.length === 0
      ? plans
      : plans.map((plan, at) => (at === last ? { ...plan, rows: [...plan.rows, ...rows] } : plan));
  }

  #warn(touch: TouchEntry, reason: string): void {
    const slug = touch.touch_point_event_slug;
    if (this.#warned.has(slug)) return;
    this.#warned.add(slug);
    this.#ctx.alerts.warning("touch:improper", `a touch of ${slug} by ${touch.channel} cannot be sent: ${reason}`);
  }
}

function keyOf(touch: TouchEntry, point: TouchPoint): StateKey {
  return { userSub: touch.user_sub, pointUid: point.uid, channel: touch.channel };
}

/** The first step of a touch's trail; all others name it as their parent. */
export const attemptUid = (touch: Pick<TouchEntry, "uid">) => stepUid(touch.uid, "send_attempt");
