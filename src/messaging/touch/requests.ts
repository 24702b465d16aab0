import { createHash } from "node:crypto";
import { sql } from "kysely";
import type { Context } from "../../jobs/context.ts";
import { canonicalJson } from "../../kernel/keyspace/index.ts";
import { errors } from "./errors.ts";
import type { TouchTables } from "./tables.ts";

/** How long a repeat gets the first answer, in seconds. */
const KEPT = 604_800;

/**
 * Runs a request once for each idempotency key. The key's row is locked while the request runs: a repeat that comes
 * meanwhile waits and gets the same answer, and one that comes after a death runs it with the same seed, from which the
 * request makes the same uids.
 */
export async function onceForKey<T>(
  ctx: Pick<Context, "sql" | "clock">,
  key: string | undefined,
  request: unknown,
  run: (seed: string | undefined) => Promise<T>,
): Promise<T> {
  if (key === undefined) return run(undefined);
  const hash = createHash("sha256").update(canonicalJson(request)).digest("base64url");
  const db = ctx.sql.tables<TouchTables>();
  await sql`
    insert into touch_requests (key, request_hash, created_at)
    values (${key}, ${hash}, to_timestamp(${ctx.clock.now()}::float8)) on conflict (key) do nothing`.execute(db);
  return db.transaction().execute(async (tx) => {
    const { rows } = await sql<{ request_hash: string; response: T | null }>`
      select request_hash, response from touch_requests where key = ${key} for update`.execute(tx);
    const held = rows[0];
    if (held && held.request_hash !== hash) throw errors.idempotency_key_reused();
    if (held?.response) return held.response;
    const answer = await run(createHash("sha256").update(`${key}\n${hash}`).digest("base64url"));
    await sql`update touch_requests set response = ${JSON.stringify(answer)}::jsonb where key = ${key}`.execute(tx);
    return answer;
  });
}

export async function forgetRequests(ctx: Pick<Context, "sql" | "clock">): Promise<void> {
  await sql`delete from touch_requests where created_at < to_timestamp(${ctx.clock.now() - KEPT}::float8)`.execute(
    ctx.sql.tables<TouchTables>(),
  );
}
