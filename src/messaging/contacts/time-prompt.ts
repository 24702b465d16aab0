import type { Context } from "../../jobs/context.ts";
import { markOnce } from "../../mechanisms/marker/index.ts";
import { reachableChannels } from "./destinations.ts";
import { effects } from "./effects.ts";
import { keys } from "./keys.ts";
import type { Channel } from "./tables.ts";

/** Channels as people and reminders call them: what reaches a phone is a text. */
const SHOWN = { email: "email", phone: "sms", push: "push" } as const satisfies Record<Channel, string>;
type ShownChannel = (typeof SHOWN)[Channel];

export interface TimePrompt {
  readonly wants_notification_time_prompt: boolean;
  /** On which the person gets reminders, with settings from before the choices became better. */
  readonly channels: readonly ShownChannel[];
  /** On which the person could be reached. */
  readonly potential_channels: readonly ShownChannel[];
}

/** How long a process believes what it read: every start of an app asks, and the answer changes once in a year. */
const REMEMBERED_SECONDS = 60;
const remembered = new WeakMap<object, { readonly at: number; readonly until: number }>();

type PromptContext = Pick<Context, "redis" | "clock" | "sql">;

/** Whether an app should ask this person again when they want to hear from it. */
export async function timePromptOf(ctx: PromptContext, userSub: string): Promise<TimePrompt> {
  const since = await settingsImprovedAt(ctx);
  const [outdated, reachable] = await Promise.all([
    effects().reminderSettings.olderThan(ctx, userSub, since),
    reachableChannels(ctx, userSub),
  ]);
  return {
    wants_notification_time_prompt: outdated.length > 0,
    channels: outdated.map((channel) => SHOWN[channel]),
    potential_channels: reachable.map((channel) => SHOWN[channel]),
  };
}

/** When the choices last became better. Whoever asks first sets it: everybody who has chosen by then has seen them. */
export async function settingsImprovedAt(ctx: Pick<Context, "redis" | "clock">): Promise<number> {
  const now = ctx.clock.now();
  const known = remembered.get(ctx.redis);
  if (known && now < known.until) return known.at;
  const marked = await markOnce(ctx, keys.settingsImprovedAt(), String(Math.floor(now)));
  const at = marked.first ? Math.floor(now) : Number(marked.value);
  remembered.set(ctx.redis, { at, until: now + REMEMBERED_SECONDS });
  return at;
}

/** Everybody who chose before now is asked again; processes that remember an older time follow within a minute. */
export async function noteSettingsImproved(ctx: Pick<Context, "redis" | "clock">): Promise<number> {
  const now = ctx.clock.now();
  const at = Math.floor(now);
  await ctx.redis.commands.set(ctx.redis.topology.key(keys.settingsImprovedAt()), String(at));
  remembered.set(ctx.redis, { at, until: now + REMEMBERED_SECONDS });
  return at;
}
