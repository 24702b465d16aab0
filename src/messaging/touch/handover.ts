import type { Context } from "../../jobs/context.ts";
import * as email from "../email/service.ts";
import * as push from "../push/service.ts";
import * as sms from "../sms/service.ts";
import { handoverGroup, TOUCH_CHANNELS, type TouchChannel } from "./entries.ts";
import { HANDOVERS } from "./keys.ts";

interface Taker {
  accept(ctx: Context, uid: string, items: readonly never[]): Promise<unknown>;
  forget(ctx: Context, uid: string): Promise<void>;
}

const TAKERS: Readonly<Record<TouchChannel, Taker>> = {
  push: { accept: (ctx, uid, items) => push.acceptPushes(ctx, { uid, items }), forget: push.forgetHandover },
  sms: { accept: (ctx, uid, entries) => sms.acceptHandover(ctx, { uid, entries }), forget: sms.forgetHandover },
  email: { accept: (ctx, uid, attempts) => email.acceptHandover(ctx, { uid, attempts }), forget: email.forgetHandover },
};

const PAGE = 20;

/**
 * Gives the channels what was dispatched for them. A group leaves our list after its room took it, and its room forgets it
 * after that: a death in between offers it once more, and the room says that it has it.
 */
export async function handOver(ctx: Context): Promise<void> {
  await Promise.all(TOUCH_CHANNELS.map((channel) => handOverTo(ctx, channel)));
}

async function handOverTo(ctx: Context, channel: TouchChannel): Promise<void> {
  const { commands, topology } = ctx.redis;
  const list = topology.key(HANDOVERS[channel]());
  for (;;) {
    const raws = await commands.lrangeBuffer(list, 0, PAGE - 1);
    if (raws.length === 0) return;
    for (const raw of raws) {
      const { uid, items } = handoverGroup.decode(raw);
      await TAKERS[channel].accept(ctx, uid, items as never);
      await commands.lrem(list, 1, raw);
      await TAKERS[channel].forget(ctx, uid);
    }
  }
}
