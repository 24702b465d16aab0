import type { Context } from "./jobs/context.ts";
import type { RecurringJob } from "./jobs/recurring.ts";
import type { AnyRunner } from "./jobs/runner.ts";
import type { Setting } from "./kernel/config.ts";
import type { ErrorFactory } from "./kernel/errors.ts";
import type { Invariant } from "./kernel/keyspace/invariant.ts";
import { defineRoute, type Route } from "./kernel/route.ts";
import type { DomainMigrations, Migration } from "./kernel/sql/index.ts";
import type { StatsFamily } from "./mechanisms/dated-counters/index.ts";

/**
 * A domain is a room with the same doors everywhere; its `index.ts` is one call of `domain` that says which doors it has.
 * This file stands between the job system and the rooms: it names what both floors know.
 */
export interface Domain {
  readonly name: string;
  /** Families of keys, from `keys.ts`. */
  readonly keys?: readonly object[];
  readonly settings?: Readonly<Record<string, Setting<never> | Setting<unknown>>>;
  readonly errors?: Readonly<Record<string, ErrorFactory>>;
  readonly migrations?: readonly Migration[];
  /** What the room counts by day, from `stats.ts`: each brings its keys, its table, its rotation and its charts. */
  readonly stats?: readonly StatsFamily[];
  readonly runners?: readonly AnyRunner[];
  readonly recurring?: readonly RecurringJob[];
  readonly routes?: readonly Route<Context>[];
  readonly invariants?: readonly Invariant[];
  /** Something that lives as long as the process does: subscriptions, watchers. Returns how to end it. */
  start?(ctx: Context, roles: ProcessRoles): Promise<() => Promise<void>>;
  /** Run by the users service, in the order of the floor plan, inside its transaction. */
  onUserCreated?(ctx: Context, tx: unknown, user: { id: number; sub: string }): Promise<void>;
  onUserDeleting?(ctx: Context, tx: unknown, user: { id: number; sub: string }): Promise<void>;
  onUserMerging?(
    ctx: Context,
    tx: unknown,
    kept: { id: number; sub: string },
    gone: { id: number; sub: string },
  ): Promise<void>;
  /** Keys that belong to one person and go with them. */
  perUserKeys?(user: { sub: string; uuid: string }): readonly string[];
}

/** Which parts of the house this process runs. */
export interface ProcessRoles {
  readonly web: boolean;
  readonly worker: boolean;
}

export function domain<const D extends Domain>(plan: D): D {
  if (!/^[a-z][a-z_]*$/.test(plan.name))
    throw new TypeError(`${plan.name} is not a domain name: lowercase and underscores`);
  // The keys of its statistics are the room's own, as if its `keys.ts` had spelled them.
  return plan.stats ? { ...plan, keys: [...(plan.keys ?? []), ...plan.stats.map(({ keys }) => keys)] } : plan;
}

/** The steps of a room's tables: its own, then those of each family of statistics, which are numbered for themselves. */
export function migrationsOf({ name, migrations, stats = [] }: Domain): readonly DomainMigrations[] {
  return [
    ...(migrations ? [{ domain: name, migrations }] : []),
    ...stats.map((family) => ({ domain: `stats:${family.name}`, migrations: family.migrations })),
  ];
}

/** Declares a route of a room: `route({ method, path, access, summary, schemas, handle })`. */
export const route = defineRoute<Context>();
