import { sql as raw } from "kysely";
import type { Context } from "../../jobs/context.ts";
import { silentLog } from "../../kernel/log.ts";
import { migrate } from "../../kernel/sql/index.ts";
import { catalogue, type Furnished, furnish, migrationPlan } from "../house.ts";
import { loadSettings } from "../settings.ts";
import type { Io } from "./io.ts";
import type { OpenKeyspace } from "./keys.ts";

/** Opens the house for the time of one command, beside whatever else runs on its data. */
export type Open = <T>(work: (ctx: Context, furnished: Furnished) => Promise<T>) => Promise<T>;

export function opener(io: Io): Open {
  return async (work) => {
    const config = loadSettings(io.environment, io.workingDirectory);
    const furnished = await furnish({ config, role: "cli", log: silentLog });
    try {
      await makeTablesOnFirstUse(furnished.ctx);
      return await work(furnished.ctx, furnished);
    } finally {
      await furnished.close();
    }
  };
}

/** For `carillon keys`: half of its commands need only the declarations, and then nothing is opened. */
export function openKeyspace(io: Io) {
  return async ({ server }: { readonly server: boolean }): Promise<OpenKeyspace> => {
    const { invariants } = catalogue();
    if (!server) return { catalogue: catalogue(), ctx: CLOSED, invariants, close: async () => {} };
    const config = loadSettings(io.environment, io.workingDirectory);
    const furnished = await furnish({ config, role: "cli", log: silentLog });
    return { catalogue: catalogue(), ctx: furnished.ctx, invariants, close: furnished.close };
  };
}

const CLOSED = new Proxy({} as OpenKeyspace["ctx"], {
  get: () => {
    throw new TypeError("this command opens no server");
  },
});

/** On an empty database a command may come before the first start; on any other, migrating stays a decision. */
async function makeTablesOnFirstUse(ctx: Context): Promise<void> {
  const { rows } = await raw<{ known: boolean }>`
    select to_regclass('carillon_migrations') is not null as known`.execute(ctx.sql.tables());
  if (!rows[0]?.known) await migrate(ctx.sql, migrationPlan());
}
