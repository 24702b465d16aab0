import { createHash } from "node:crypto";
import { sql } from "kysely";
import { z } from "zod";
import type { Context, JobContext } from "../../jobs/context.ts";
import { CarillonError } from "../../kernel/errors.ts";
import type { StopReason } from "../../mechanisms/run-report/index.ts";
import { errors as userErrors } from "../../people/users/service.ts";
import { countReachable, type Person, reachableBetween, type WhichPeople } from "../contacts/service.ts";
import { forgetHandover, nudgeByName, touchQueueLength, wasQueued } from "./enqueue.ts";
import { METHOD_OF, type TouchChannel } from "./entries.ts";
import { errors } from "./errors.ts";
import { MissingParameter } from "./format.ts";
import { checkOrder, dropOrders, Order, prepareOrders, queueOrders } from "./order.ts";
import { EventSlug, type TouchPoint } from "./point.ts";
import { pointsBySlug } from "./point-store.ts";
import { renderMessage } from "./render.ts";
import { settings } from "./settings.ts";
import type { TouchTables } from "./tables.ts";

/** Seconds to wait when touches have no room. */
const PATIENCE = 5;

/** What everybody is told: the event, and parameters that are the same for all. */
export const CampaignWish = z.strictObject({
  touch_point_event_slug: EventSlug,
  event_parameters: z.record(z.string(), z.unknown()).default({}).meta({
    description: "The same for everybody. `name`, `url` and `unsubscribe_url` are each person's own unless given",
  }),
});
export type CampaignWish = z.output<typeof CampaignWish>;

export interface NewCampaign extends CampaignWish {
  readonly uid: string;
  readonly channel: TouchChannel;
}

interface Running {
  readonly uid: string;
  readonly channel: TouchChannel;
  readonly event_slug: string;
  readonly event_parameters: Readonly<Record<string, unknown>>;
  readonly after_sub: string;
  readonly until_sub: string | null;
}

/** Who wants texts regularly; nobody until a room that knows it says so. */
let reminded: WhichPeople = sql`false`;

/** Installs who may be texted in a campaign; answers how to take it away again. */
export function installReminded(which: WhichPeople): () => void {
  const before = reminded;
  reminded = which;
  return () => {
    reminded = before;
  };
}

/** Texts cost, and many call them a nuisance: only who gets reminders by text gets other texts. */
const meant = (channel: TouchChannel): WhichPeople => (channel === "sms" ? reminded : sql`true`);

/** What one person is told. Links are made where the event has a place for them. */
function orderFor(
  { event_slug, event_schema }: Pick<TouchPoint, "event_slug" | "event_schema">,
  channel: TouchChannel,
  parameters: Readonly<Record<string, unknown>>,
  { sub, given_name }: Person,
): Order {
  const places = Object.keys((event_schema.properties ?? {}) as object);
  const isOpen = (name: string) => places.includes(name) && !(name in parameters);
  const link: OrderedLink = { parameter: "url", code_style: channel === "sms" ? "short" : "normal" };
  const links = [
    ...(isOpen("url") ? [link] : []),
    ...(channel === "email" && isOpen("unsubscribe_url") ? [LEAVING] : []),
  ];
  return Order.parse({
    user_sub: sub,
    touch_point_event_slug: event_slug,
    channels: [channel],
    event_parameters: { ...parameters, ...(isOpen("name") ? { name: given_name ?? "there" } : {}) },
    links,
  } satisfies z.input<typeof Order>);
}

type OrderedLink = NonNullable<z.input<typeof Order>["links"]>[number];

const LEAVING: OrderedLink = {
  parameter: "unsubscribe_url",
  page_identifier: "unsubscribe",
  preview_identifier: "unsubscribe",
  preview_extra: { list: "announcements" },
  code_style: "long",
};

/**
 * Refuses a campaign that would reach everybody with nothing to say, where somebody hears of it. Answers what it says to
 * somebody who gave no name, message by message.
 */
export async function checkCampaign(
  ctx: Pick<Context, "sql">,
  channel: TouchChannel,
  { touch_point_event_slug: slug, event_parameters }: CampaignWish,
) {
  const point = (await pointsBySlug(ctx, [slug])).get(slug);
  if (!point) throw errors.touch_point_not_found();
  const order = orderFor(point, channel, event_parameters, { sub: "somebody", given_name: null });
  checkOrder(order, point);
  const addresses = order.links.map(({ parameter }) => [parameter, "https://example.com/l/code"]);
  const parameters = { ...order.event_parameters, ...Object.fromEntries(addresses) };
  return point.messages[channel].map((message) => {
    try {
      return renderMessage(channel, message as never, parameters);
    } catch (error) {
      if (!(error instanceof MissingParameter)) throw error;
      throw errors.parameters_mismatch({ message: `A message of ${slug} cannot be made: ${error.message}.` });
    }
  });
}

/** Whom a campaign would tell if it began now, and in which words. Refuses what could not begin. */
export async function previewCampaign(ctx: Pick<Context, "sql">, channel: TouchChannel, wish: CampaignWish) {
  const messages = await checkCampaign(ctx, channel, wish);
  const { reachable: people, everybody } = await countReachable(ctx, METHOD_OF[channel], meant(channel));
  return { people, everybody, messages };
}

/** Begins a campaign; one that has begun stays as it is. */
export async function startCampaign(
  ctx: Context,
  { uid, channel, touch_point_event_slug: slug, event_parameters }: NewCampaign,
): Promise<void> {
  await sql`
    insert into touch_campaigns (uid, channel, event_slug, event_parameters, state, after_sub, told, created_at)
    values (${uid}, ${channel}, ${slug}, ${JSON.stringify(event_parameters)}::jsonb, 'running', '', 0,
      to_timestamp(${ctx.clock.now()}::float8))
    on conflict (uid) do nothing`.execute(ctx.sql.tables<TouchTables>());
  nudgeByName(ctx, "runners.touch.send_campaigns");
}

/** Ends a campaign where it is: who was told stays told. */
export async function stopCampaign(ctx: Pick<Context, "sql" | "clock">, uid: string): Promise<void> {
  if (!(await end(ctx, uid, "stopped", null))) throw errors.campaign_not_found();
}

async function end(
  ctx: Pick<Context, "sql" | "clock">,
  uid: string,
  state: "finished" | "stopped" | "failed",
  reason: string | null,
): Promise<boolean> {
  const { rows } = await sql`
    update touch_campaigns set state = ${state}, reason = ${reason}, until_sub = null,
      ended_at = to_timestamp(${ctx.clock.now()}::float8)
    where uid = ${uid} and state = 'running' returning id`.execute(ctx.sql.tables<TouchTables>());
  return rows.length > 0;
}

/**
 * Goes through everybody, page by page in the order of subs, and queues a touch for each who can be reached.
 *
 *   page chosen: its end is written down ─▶ touches queued once, under the page's name ─▶ page done, the next begins
 *
 * A death leaves a page whose end is known, and queueing it again is seen by its name: nobody is told twice or left out.
 * While touches have no room the campaign waits. The oldest campaign goes first.
 */
export async function sendCampaigns(ctx: JobContext): Promise<StopReason> {
  for (;;) {
    if (ctx.shuttingDown()) return "signal";
    if (ctx.budget.exhausted()) return "time_exhausted";
    const campaign = await oldest(ctx);
    if (!campaign) return "list_exhausted";
    const { wentOn } = await goOn(ctx, campaign);
    if (!wentOn && !(await ctx.sleep(PATIENCE))) return "signal";
  }
}

async function oldest(ctx: Pick<Context, "sql">): Promise<Running | undefined> {
  const { rows } = await sql<Running>`
    select uid, channel, event_slug, event_parameters, after_sub, until_sub from touch_campaigns
    where state = 'running' order by id limit 1`.execute(ctx.sql.tables<TouchTables>());
  return rows[0];
}

/** One page. What cannot be said any more, because somebody changed the touch point, ends the campaign. */
async function goOn(ctx: JobContext, campaign: Running): Promise<{ readonly wentOn: boolean }> {
  try {
    const until = campaign.until_sub ?? (await choosePage(ctx, campaign));
    if (until === null) await end(ctx, campaign.uid, "finished", null);
    else return { wentOn: await tellPage(ctx, campaign, until) };
  } catch (error) {
    // Somebody who left just now is not gone through the next time.
    const left = userErrors.user_not_found.matches(error as unknown);
    if (left || !(error instanceof CarillonError) || error.status >= 500) throw error;
    await end(ctx, campaign.uid, "failed", error.message);
    ctx.alerts.warning("touch:campaign_failed", `the campaign of ${campaign.event_slug} ended early: ${error.message}`);
  }
  return { wentOn: true };
}

/** Writes down where the next page ends, so that a repeat goes through the same people; null after the last one. */
async function choosePage(ctx: JobContext, { uid, after_sub }: Running): Promise<string | null> {
  const size = Math.min(ctx.config.get(settings.campaignPage), ctx.config.get(settings.queueLimit));
  const { rows } = await sql<{ until_sub: string | null }>`
    update touch_campaigns set until_sub = (
      select max(page.sub) from (select sub from users where sub > ${after_sub} order by sub limit ${size}) as page)
    where uid = ${uid} and state = 'running' returning until_sub`.execute(ctx.sql.tables<TouchTables>());
  return rows[0]?.until_sub ?? null;
}

/** False when touches have no room for it now. */
async function tellPage(ctx: JobContext, campaign: Running, until: string): Promise<boolean> {
  const { uid, channel, event_slug: slug, event_parameters, after_sub: after } = campaign;
  const people = await reachableBetween(ctx, METHOD_OF[channel], { after, until, which: meant(channel) });
  const page = createHash("sha256").update(`${uid}\n${after}`).digest("base64url");
  if (people.length > 0 && !(await wasQueued(ctx, page))) {
    const room = ctx.config.get(settings.queueLimit) - (await touchQueueLength(ctx));
    if (room < people.length) return false;
    const point = (await pointsBySlug(ctx, [slug])).get(slug);
    if (!point) throw errors.touch_point_not_found();
    const orders = people.map((person) => orderFor(point, channel, event_parameters, person));
    const touches = await prepareOrders(ctx, orders, page);
    try {
      await queueOrders(ctx, orders, touches, page);
    } catch (error) {
      if (!errors.touch_backpressure.matches(error)) throw error;
      await dropOrders(ctx, touches);
      return false;
    }
  }
  await sql`
    update touch_campaigns set after_sub = ${until}, until_sub = null, told = told + ${people.length}
    where uid = ${uid} and after_sub = ${after} and state = 'running'`.execute(ctx.sql.tables<TouchTables>());
  await forgetHandover(ctx, page);
  return true;
}
