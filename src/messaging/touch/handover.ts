import type { Context } from "../../jobs/context.ts";
import { handOver, handOverGroup } from "../../mechanisms/hand-over/index.ts";
import * as email from "../email/service.ts";
import * as push from "../push/service.ts";
import * as sms from "../sms/service.ts";
import { handoverGroup, TOUCH_CHANNELS, type TouchChannel } from "./entries.ts";
import { HANDOVERS } from "./keys.ts";

/** Messages for one channel, and the group as our list has it. */
export interface Group {
  readonly uid: string;
  readonly items: readonly object[];
  /** The items as they are written, where they were just written. */
  readonly raws?: readonly string[];
  readonly raw: string | Buffer;
}
export type Groups = Readonly<Record<TouchChannel, readonly Group[]>>;

interface Taker {
  accept(ctx: Context, uid: string, items: readonly never[], written: object): Promise<unknown>;
  forget(ctx: Context, uid: string): Promise<void>;
}

const TAKERS: Readonly<Record<TouchChannel, Taker>> = {
  push: {
    accept: (ctx, uid, items, written) => push.acceptPushes(ctx, { uid, items, ...written }),
    forget: push.forgetHandover,
  },
  sms: {
    accept: (ctx, uid, entries, written) => sms.acceptHandover(ctx, { uid, entries, ...written }),
    forget: sms.forgetHandover,
  },
  email: {
    accept: (ctx, uid, attempts, written) => email.acceptHandover(ctx, { uid, attempts, ...written }),
    forget: email.forgetHandover,
  },
};

/** A group of messages, written once for our list and for the queue of their channel. */
export function groupOf(uid: string, items: readonly object[]): Group {
  const raws = items.map((item) => JSON.stringify(item));
  return { uid, items, raws, raw: `{"uid":${JSON.stringify(uid)},"items":[${raws.join(",")}]}` };
}

/** How a channel takes its groups. */
const planFor = (ctx: Context, channel: TouchChannel) => ({
  list: HANDOVERS[channel](),
  codec: handoverGroup,
  accept: ({ uid, items, raws }: Omit<Group, "raw">) =>
    TAKERS[channel].accept(ctx, uid, items as never, raws ? { raws } : {}),
  forget: (uid: string) => TAKERS[channel].forget(ctx, uid),
});

/** Gives the channels what was dispatched for them and is still in our lists. */
export async function handOverLeft(ctx: Context): Promise<void> {
  await Promise.all(TOUCH_CHANNELS.map((channel) => handOver(ctx, planFor(ctx, channel))));
}

/** The same for groups that the caller has just dispatched: they need not be read. */
export async function handOverGroups(ctx: Context, groups: Groups): Promise<void> {
  await Promise.all(
    TOUCH_CHANNELS.map(async (channel) => {
      const plan = planFor(ctx, channel);
      for (const { raw, ...group } of groups[channel]) await handOverGroup(ctx, plan, group, raw);
    }),
  );
}
