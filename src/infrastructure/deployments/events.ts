import type { KernelContext } from "../../kernel/context.ts";
import { timestamp } from "../../kernel/sql/index.ts";
import type { DeploymentEvent, DeploymentEventRow, DeploymentTables } from "./tables.ts";

const KEPT_DAYS = 180;

type EventContext = Pick<KernelContext, "sql" | "clock" | "hostname" | "log">;

export interface NewEvent {
  readonly repo: string;
  readonly event: DeploymentEvent;
  readonly token?: string;
  readonly sha?: string;
}

/** Writes down what happened. A database that is away must not stop an update, so this never fails. */
export async function recordEvent(ctx: EventContext, event: NewEvent): Promise<void> {
  try {
    await ctx.sql
      .tables<DeploymentTables>()
      .insertInto("deployment_events")
      .values({
        repo: event.repo,
        instance: ctx.hostname,
        token: event.token ?? null,
        event: event.event,
        sha: event.sha ?? null,
        created_at: timestamp(ctx.clock.now()),
      })
      .execute();
  } catch (error) {
    ctx.log.error({ err: error, repo: event.repo, event: event.event }, "a deployment event cannot be written");
  }
}

export async function forgetOldEvents(ctx: EventContext): Promise<void> {
  await ctx.sql
    .tables<DeploymentTables>()
    .deleteFrom("deployment_events")
    .where("created_at", "<", timestamp(ctx.clock.now() - KEPT_DAYS * 86_400))
    .execute()
    .catch((error: unknown) => ctx.log.error({ err: error }, "old deployment events cannot be removed"));
}

/** The unit's last update, if the instance that began it never said how it ended. */
export async function unfinishedUpdate(
  ctx: EventContext,
  repo: string,
): Promise<Pick<DeploymentEventRow, "instance" | "token"> | undefined> {
  const tables = ctx.sql.tables<DeploymentTables>();
  try {
    const last = await tables
      .selectFrom("deployment_events as begun")
      .select(({ exists, selectFrom }) => [
        "begun.instance",
        "begun.token",
        exists(
          selectFrom("deployment_events as ended")
            .select("ended.id")
            .whereRef("ended.repo", "=", "begun.repo")
            .whereRef("ended.token", "=", "begun.token")
            .where("ended.event", "in", ["ready", "build_failed", "lock_expired"]),
        ).as("ended"),
      ])
      .where("begun.repo", "=", repo)
      .where("begun.event", "=", "updating")
      .orderBy("begun.id", "desc")
      .limit(1)
      .executeTakeFirst();
    return last && !last.ended ? last : undefined;
  } catch (error) {
    ctx.log.error({ err: error, repo }, "the last update cannot be looked up");
    return undefined;
  }
}

export async function recentEvents(ctx: Pick<KernelContext, "sql">, repos: readonly string[], limit: number) {
  return ctx.sql
    .tables<DeploymentTables>()
    .selectFrom("deployment_events")
    .select(["repo", "instance", "event", "sha", "created_at"])
    .where("repo", "in", [...repos])
    .orderBy("id", "desc")
    .limit(limit)
    .execute();
}
