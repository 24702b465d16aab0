import { type RawBuilder, sql } from "kysely";
import type { Context } from "../../jobs/context.ts";
import { newUid } from "../../kernel/ids.ts";
import { timestamp } from "../../kernel/sql/index.ts";
import { errors } from "./errors.ts";
import type { EventType } from "./event.ts";
import { forgetEndpoints } from "./known-endpoints.ts";
import { secretOf } from "./signature.ts";
import type { DisabledReason, WebhookTables } from "./tables.ts";

/** Where an application hears of events, as administrators see it. */
export interface Endpoint {
  readonly uid: string;
  readonly url: string;
  readonly description: string;
  readonly types: readonly EventType[];
  readonly enabled: boolean;
  readonly disabled_reason: DisabledReason | null;
  readonly disabled_at: number | null;
  readonly failing_since: number | null;
  readonly previous_secret_until: number | null;
  readonly created_at: number;
}

interface Row extends Omit<Endpoint, "enabled"> {
  readonly id: number;
  readonly secret_number: number;
}

export interface EndpointFields {
  readonly url: string;
  readonly types: readonly EventType[];
  readonly description: string;
}

/** Each event is stored once for each of them, so there are not many. */
export const MOST_ENDPOINTS = 50;

const COLUMNS = sql`id, uid, url, description, types, secret_number, previous_secret_until, failing_since, disabled_at,
  disabled_reason, created_at`;

type EndpointContext = Pick<Context, "sql" | "clock" | "config">;

const shown = ({ id: _, secret_number: __, ...row }: Row): Endpoint => ({ ...row, enabled: row.disabled_at === null });

const withSecret = (ctx: EndpointContext, row: Row) => ({ ...shown(row), secret: secretOf(ctx, row) });

async function query(ctx: Pick<Context, "sql">, statement: RawBuilder<Row>): Promise<readonly Row[]> {
  return (await statement.execute(ctx.sql.tables<WebhookTables>())).rows;
}

/** Makes an endpoint; its secret is in this answer and in no later one. */
export async function createEndpoint(ctx: EndpointContext, fields: EndpointFields) {
  const [made] = await query(
    ctx,
    sql`
    insert into webhook_endpoints (uid, url, description, types, secret_number, created_at)
    select ${newUid("whe")}, ${fields.url}, ${fields.description}, ${[...fields.types]}::text[], 1,
      ${timestamp(ctx.clock.now())}
    where (select count(*) from webhook_endpoints) < ${MOST_ENDPOINTS}
    returning ${COLUMNS}`,
  );
  if (!made) throw errors.too_many_webhook_endpoints();
  forgetEndpoints(ctx);
  return withSecret(ctx, made);
}

export async function listEndpoints(ctx: Pick<Context, "sql">): Promise<readonly Endpoint[]> {
  return (await query(ctx, sql`select ${COLUMNS} from webhook_endpoints order by id`)).map(shown);
}

export async function endpointRow(ctx: Pick<Context, "sql">, uid: string): Promise<Row> {
  const [found] = await query(ctx, sql`select ${COLUMNS} from webhook_endpoints where uid = ${uid}`);
  if (!found) throw errors.webhook_endpoint_not_found();
  return found;
}

export async function readEndpoint(ctx: Pick<Context, "sql">, uid: string): Promise<Endpoint> {
  return shown(await endpointRow(ctx, uid));
}

/** Changes what is given. An endpoint that is switched on begins anew: earlier failures are forgiven. */
export async function changeEndpoint(
  ctx: EndpointContext,
  uid: string,
  changes: Partial<EndpointFields> & { readonly enabled?: boolean | undefined },
): Promise<Endpoint> {
  const { url = null, description = null, types, enabled = null } = changes;
  const [changed] = await query(
    ctx,
    sql`
    update webhook_endpoints set
      url = coalesce(${url}::text, url), description = coalesce(${description}::text, description),
      types = coalesce(${types ? [...types] : null}::text[], types),
      failing_since = case when ${enabled}::boolean then null else failing_since end,
      disabled_at = case when ${enabled}::boolean then null
        when not ${enabled}::boolean then coalesce(disabled_at, ${timestamp(ctx.clock.now())}) else disabled_at end,
      disabled_reason = case when ${enabled}::boolean then null
        when not ${enabled}::boolean then coalesce(disabled_reason, 'admin') else disabled_reason end
    where uid = ${uid} returning ${COLUMNS}`,
  );
  if (!changed) throw errors.webhook_endpoint_not_found();
  forgetEndpoints(ctx);
  return shown(changed);
}

/** Removes an endpoint with its messages. */
export async function deleteEndpoint(ctx: Pick<Context, "sql">, uid: string): Promise<void> {
  const gone = await query(ctx, sql`delete from webhook_endpoints where uid = ${uid} returning ${COLUMNS}`);
  if (gone.length === 0) throw errors.webhook_endpoint_not_found();
  forgetEndpoints(ctx);
}

/** Gives an endpoint a new secret. The one before signs too for so many seconds; any older one ends now. */
export async function rotateSecret(ctx: EndpointContext, uid: string, keepPreviousFor: number) {
  const until = keepPreviousFor > 0 ? timestamp(ctx.clock.now() + keepPreviousFor) : sql`null`;
  const [rotated] = await query(
    ctx,
    sql`
    update webhook_endpoints set secret_number = secret_number + 1, previous_secret_until = ${until}
    where uid = ${uid} returning ${COLUMNS}`,
  );
  if (!rotated) throw errors.webhook_endpoint_not_found();
  return withSecret(ctx, rotated);
}
