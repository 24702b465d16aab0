import type { Context } from "../../jobs/context.ts";
import type { WebhookTables } from "./tables.ts";

/** Who wants to hear of what, as this process knows it. */
export interface KnownEndpoint {
  readonly id: number;
  readonly uid: string;
  readonly types: readonly string[];
}

interface Known {
  readonly at: number;
  readonly endpoints: readonly KnownEndpoint[];
}

type KnowingContext = Pick<Context, "sql" | "clock">;

/** How long what another process changed may go unnoticed. */
const FRESH_SECONDS = 5;

const known = new WeakMap<Context["sql"], Known>();
const loading = new WeakMap<Context["sql"], Promise<Known>>();

/** The endpoints that are switched on. */
export async function knownEndpoints(ctx: KnowingContext): Promise<readonly KnownEndpoint[]> {
  const held = freshOf(ctx) ?? (await load(ctx));
  return held.endpoints;
}

/**
 * Whether somebody may want events of this type, answered without waiting: where it is not known just now the answer is
 * yes, and the next one knows better.
 */
export function mayWant(ctx: KnowingContext, type: string): boolean {
  const held = freshOf(ctx);
  if (held) return held.endpoints.some(({ types }) => types.includes(type));
  load(ctx).catch(() => {});
  return true;
}

/** After a change by this process. */
export function forgetEndpoints({ sql }: Pick<Context, "sql">): void {
  known.delete(sql);
  loading.delete(sql);
}

function freshOf({ sql, clock }: KnowingContext): Known | undefined {
  const held = known.get(sql);
  return held && clock.monotonic() - held.at < FRESH_SECONDS ? held : undefined;
}

function load({ sql, clock }: KnowingContext): Promise<Known> {
  const underWay = loading.get(sql);
  if (underWay) return underWay;
  const at = clock.monotonic();
  const loaded: Promise<Known> = sql
    .tables<WebhookTables>()
    .selectFrom("webhook_endpoints")
    .select(["id", "uid", "types"])
    .where("disabled_at", "is", null)
    .orderBy("id")
    .execute()
    .then((endpoints) => {
      const held = { at, endpoints };
      // A change meanwhile made this answer old.
      if (loading.get(sql) === loaded) known.set(sql, held);
      return held;
    })
    .finally(() => {
      if (loading.get(sql) === loaded) loading.delete(sql);
    });
  loading.set(sql, loaded);
  return loaded;
}
