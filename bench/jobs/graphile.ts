import { Logger, makeWorkerUtils, run as runGraphile } from "graphile-worker";
import pg from "pg";
import { findPostgres, startPostgres } from "../../test/harness/postgres.ts";
import { perSecond } from "../kit.ts";
import { kwargsOf } from "./index.ts";

export interface GraphileReport {
  readonly text: string;
  readonly addedPerSecond?: number;
  readonly processedPerSecond?: number;
}

/** The same work on Graphile Worker and a temporary Postgres, for orientation, where a Postgres is installed. */
export async function graphileWorker(count: number): Promise<GraphileReport> {
  const bin = findPostgres();
  if (!bin) return { text: "Graphile Worker: not measured, no Postgres server is installed here." };
  const postgres = await startPostgres(bin);
  try {
    const pgPool = new pg.Pool({ connectionString: postgres.url, max: 40 });
    // Connections that the server closes at the end are no news.
    pgPool.on("error", () => {});
    pgPool.on("connect", (client) => client.on("error", () => {}));
    const utils = await makeWorkerUtils({ pgPool });
    await utils.migrate();
    const addedPerSecond = await perSecond(count, () =>
      utils.withPgClient(async (client) => {
        const specs = Array.from({ length: count }, (_, n) => ({ identifier: "bench", payload: kwargsOf(n) }));
        for (let start = 0; start < count; start += 1000)
          await client.query(
            `select graphile_worker.add_jobs(array(select json_populate_recordset(null::graphile_worker.job_spec, $1::json)))`,
            [JSON.stringify(specs.slice(start, start + 1000))],
          );
      }),
    );
    let runs = 0;
    const processedPerSecond = await perSecond(count, async () => {
      let done!: () => void;
      const all = new Promise<void>((resolve) => {
        done = resolve;
      });
      const runner = await runGraphile({
        pgPool,
        concurrency: 32,
        noHandleSignals: true,
        logger: new Logger(() => () => {}),
        taskList: {
          bench: async () => {
            runs += 1;
            if (runs === count) done();
          },
        },
      });
      await all;
      await runner.stop();
    });
    await utils.release();
    await pgPool.end();
    const text = `Graphile Worker 0.16 on a local Postgres, for orientation: bulk add ${Math.round(addedPerSecond)} jobs/s, process at concurrency 32 ${Math.round(processedPerSecond)} jobs/s.`;
    return { text, addedPerSecond, processedPerSecond };
  } finally {
    await postgres.stop();
  }
}
