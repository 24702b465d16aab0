import type { AddressInfo } from "node:net";
import { fastify } from "fastify";
import { sql } from "kysely";
import { domains } from "../src/domains.ts";
import { newUid } from "../src/kernel/ids.ts";
import { openLog } from "../src/kernel/log.ts";
import { openRedis } from "../src/kernel/redis/index.ts";
import { createLinks } from "../src/messaging/links/service.ts";
import { settings as linkSettings } from "../src/messaging/links/settings.ts";
import { buildServer } from "../src/surfaces/http/index.ts";
import { type BenchContext, type Engine, furnish, openEngine } from "./furnish.ts";

/** What the measuring process tells the one that serves. */
export type Wish =
  | { readonly do: "serve"; readonly side: "bare" }
  | {
      readonly do: "serve";
      readonly side: "ours" | "by hand";
      readonly socketPath: string;
      readonly engine: Engine["name"];
    }
  /** Makes links; answers their codes. */
  | { readonly do: "make"; readonly kind: "buffered" | "stored"; readonly count: number }
  /** Answers how many clicks are kept, and the processor time spent so far. */
  | { readonly do: "count" }
  | { readonly do: "cpu" }
  | { readonly do: "stop" };

let house: { readonly ctx: BenchContext; readonly engine: Engine } | undefined;
const ROOMS = new Set([
  "users",
  "access",
  "operations",
  "contacts",
  "email_templates",
  "sms",
  "email",
  "push",
  "links",
]);
const GROUP = 500;

async function openHouse(socketPath: string, name: Engine["name"]): Promise<NonNullable<typeof house>> {
  const redis = openRedis({ kind: "socket", path: socketPath });
  await redis.ready();
  const engine = await openEngine(name);
  // The load is one crowd of people who are not signed in; the limit against guessed codes would take them for guessers.
  const settings = [[linkSettings.signedOutLimit, 1_000_000_000] as const];
  const ctx = { ...furnish({ redis, sql: engine.sql, settings }), log: openLog({ level: "info", pretty: false }) };
  return { ctx, engine };
}

/** Our whole server with its real log and measurements. */
function ours({ ctx }: NonNullable<typeof house>) {
  return buildServer(
    ctx,
    domains.filter((room) => ROOMS.has(room.name)),
  );
}

/** What a team would write first: a route that redirects. No log, no hooks, no checks, nothing kept. */
function bare() {
  const app = fastify();
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "string" }, (_request, body, done) => done(null, body));
  app.post("/l/:code", (_request, reply) => reply.redirect("https://app.example.com/", 303));
  return app;
}

/**
 * What a team would write next, so that clicks are kept: the code is limited in Redis, its link is looked up, and the click
 * stored and counted, each when its request comes. Still no log, no robots, no statistics by day.
 */
function byHand({ ctx: { redis, sql: database } }: NonNullable<typeof house>) {
  const app = bare();
  const [commands, tables] = [redis.commands, database.tables<never>()];
  app.post<{ Params: { code: string } }>("/kept/:code", async ({ params: { code } }, reply) => {
    const uses = await commands.incr(`clicks:${code}`);
    if (uses === 1) await commands.expire(`clicks:${code}`, 3);
    const { rows } = await sql<{ id: number }>`
      select id from user_touch_links where code = ${code}`.execute(tables);
    if (!rows[0]) return reply.code(404).send();
    if (uses === 1) {
      await sql`
        insert into user_touch_link_clicks (uid, user_touch_link_id, track_type, parent_known, user_known, visitor_known,
          child_known, clicked_at, created_at)
        values (${newUid("utlc")}, ${rows[0].id}, 'on_click', false, false, false, false, now(), now())`.execute(
        tables,
      );
      await commands.incr("clicks");
    }
    return reply.redirect("https://app.example.com/", 303);
  });
  return app;
}

async function make({ ctx, engine }: NonNullable<typeof house>, kind: "buffered" | "stored", count: number) {
  await ctx.redis.commands.flushall();
  await engine.sql.script("truncate user_touch_links, user_touches cascade");
  if (kind === "stored") {
    await engine.sql.script(`
insert into users (sub, uuid, created_at) values ('bench', gen_random_uuid(), now()) on conflict do nothing;
insert into user_touches (uid, send_uid, user_id, channel, destination, message, created_at)
  select 'crl_ut_' || n, 'crl_tch_' || n, users.id, 'sms', '+14155550132', '{}', now()
  from users, generate_series(1, ${count}) as n where sub = 'bench';
insert into user_touch_links (uid, user_touch_id, code, page_identifier, page_extra, preview_identifier, preview_extra, created_at)
  select 'crl_utl_' || id, id, 'bench' || substr(uid, 8), 'home', '{}', 'default', '{}', now() from user_touches;
analyze;`);
    return Array.from({ length: count }, (_, at) => `bench${at + 1}`);
  }
  const codes: string[] = [];
  for (let start = 0; start < count; start += GROUP) {
    const links = Array.from({ length: Math.min(GROUP, count - start) }, (_, at) => ({
      touchUid: `crl_tch_${start + at}`,
      page: { identifier: "home" },
    }));
    codes.push(...(await createLinks(ctx, links)).map(({ code }) => code));
  }
  return codes;
}

/** Clicks that wait in the buffer, and clicks that are stored. */
async function kept({ ctx, engine }: NonNullable<typeof house>): Promise<number> {
  const waiting = await ctx.redis.commands.keys("touch_links:buffer:on_clicks_by_uid:*");
  const stored = await engine.sql
    .tables<{ user_touch_link_clicks: { id: number } }>()
    .selectFrom("user_touch_link_clicks")
    .select("id")
    .execute();
  return waiting.length + stored.length;
}

async function answerTo(wish: Wish): Promise<unknown> {
  if (wish.do === "cpu") return process.cpuUsage();
  if (wish.do === "make") return make(house!, wish.kind, wish.count);
  if (wish.do === "count") return kept(house!);
  if (wish.do === "stop") {
    await house?.engine.close();
    process.exit(0);
  }
  if (wish.side !== "bare") house = await openHouse(wish.socketPath, wish.engine);
  const app = wish.side === "bare" ? bare() : wish.side === "ours" ? await ours(house!) : byHand(house!);
  await app.listen({ host: "127.0.0.1", port: 0 });
  return (app.server.address() as AddressInfo).port;
}

process.on("message", async (wish: Wish) => void process.send!({ answer: await answerTo(wish) }));
