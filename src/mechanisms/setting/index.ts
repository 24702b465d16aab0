import type { KernelContext } from "../../kernel/context.ts";
import type { Codec, KeyName } from "../../kernel/keyspace/index.ts";
import { timestamp } from "../../kernel/sql/index.ts";
import type { SettingTables } from "./tables.ts";

export { settingMigrations } from "./tables.ts";

/**
 * A value that people or jobs set and every process reads: hot in Redis without expiry, durable in SQL.
 *
 * SQL is authoritative. A write first commits the value there, marked as not mirrored; then, holding the row, it puts
 * into Redis whatever the row says now and clears the mark. Two writers therefore leave the later value in both places.
 * A crash after the commit leaves the mark, and `mirrorSettings` finishes; a Redis that lost its data is filled by the
 * first read.
 */
export interface MirroredKey<T> {
  (): KeyName<"string">;
  readonly codec: Codec<T>;
}

type SettingContext = Pick<KernelContext, "redis" | "sql" | "clock">;

export async function writeSetting<T>(ctx: SettingContext, key: MirroredKey<T>, value: T): Promise<void> {
  const row = { value: key.codec.encode(value).toString("utf8"), mirrored: false };
  const updated_at = timestamp(ctx.clock.now());
  await ctx.sql
    .tables<SettingTables>()
    .insertInto("mirrored_settings")
    .values({ name: key(), ...row, updated_at })
    .onConflict((conflict) => conflict.column("name").doUpdateSet({ ...row, updated_at }))
    .execute();
  await mirror(ctx, [key()]);
}

/** The present value; undefined when none was ever set. */
export async function readSetting<T>(ctx: SettingContext, key: MirroredKey<T>): Promise<T | undefined> {
  const held = await ctx.redis.commands.getBuffer(ctx.redis.topology.key(key()));
  if (held !== null) return key.codec.decode(held);
  const [stored] = await mirror(ctx, [key()]);
  return stored === undefined ? undefined : key.codec.decode(Buffer.from(stored));
}

/** Finishes writes that died between SQL and Redis; answers how many. */
export async function mirrorSettings(ctx: SettingContext): Promise<number> {
  const behind = await ctx.sql
    .tables<SettingTables>()
    .selectFrom("mirrored_settings")
    .select("name")
    .where("mirrored", "=", false)
    .execute();
  const names = behind.map(({ name }) => name);
  return names.length === 0 ? 0 : (await mirror(ctx, names)).length;
}

/** Copies rows into Redis while holding them, so that no older value can arrive last. Answers the values. */
function mirror(ctx: SettingContext, names: readonly string[]): Promise<string[]> {
  return ctx.sql
    .tables<SettingTables>()
    .transaction()
    .execute(async (tx) => {
      const rows = await tx
        .selectFrom("mirrored_settings")
        .select(["name", "value"])
        .where("name", "in", [...names])
        .orderBy("name")
        .forUpdate()
        .execute();
      if (rows.length === 0) return [];
      await Promise.all(rows.map(({ name, value }) => ctx.redis.commands.set(ctx.redis.topology.key(name), value)));
      await tx
        .updateTable("mirrored_settings")
        .set({ mirrored: true })
        .where(
          "name",
          "in",
          rows.map(({ name }) => name),
        )
        .execute();
      return rows.map(({ value }) => value);
    });
}
