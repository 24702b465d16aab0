import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { Logger, makeWorkerUtils, run as runGraphile } from "graphile-worker";
import pg from "pg";
import { perSecond } from "../kit.ts";
import { kwargsOf } from "./index.ts";

export interface GraphileReport {
  readonly text: string;
  readonly addedPerSecond?: number;
  readonly processedPerSecond?: number;
}

/** The same work on Graphile Worker and a temporary Postgres, for orientation, where a Postgres is installed. */
export async function graphileWorker(count: number): Promise<GraphileReport> {
  const bin = postgresBin();
  if (!bin) return { text: "Graphile Worker: not measured, no Postgres server is installed here." };
  const postgres = await temporaryPostgres(bin);
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

function postgresBin(): string | undefined {
  const root = "/usr/lib/postgresql";
  if (!existsSync(root)) return undefined;
  const version = readdirSync(root).sort((a, b) => Number(b) - Number(a))[0];
  return version === undefined ? undefined : join(root, version, "bin");
}

/** Postgres refuses to run as root; there it runs as the `postgres` user that its package made. */
async function temporaryPostgres(bin: string) {
  const directory = mkdtempSync(join(tmpdir(), "carillon-bench-postgres-"));
  const data = join(directory, "data");
  const asRoot = userInfo().uid === 0;
  const identity = asRoot
    ? {
        uid: Number(execFileSync("id", ["-u", "postgres"], { encoding: "utf8" })),
        gid: Number(execFileSync("id", ["-g", "postgres"], { encoding: "utf8" })),
      }
    : {};
  if (asRoot) execFileSync("chown", ["postgres", directory]);
  execFileSync(join(bin, "initdb"), ["-D", data, "-A", "trust", "-U", "bench"], {
    ...identity,
    cwd: directory,
    stdio: "ignore",
  });
  const port = await freePort();
  const server = spawn(
    join(bin, "postgres"),
    ["-D", data, "-p", String(port), "-c", "listen_addresses=127.0.0.1", "-c", `unix_socket_directories=${directory}`],
    { ...identity, cwd: directory, stdio: "ignore" },
  );
  const isReady = () => {
    try {
      execFileSync(join(bin, "pg_isready"), ["-h", "127.0.0.1", "-p", String(port)], { stdio: "ignore" });
      return true;
    } catch {
      return false;
    }
  };
  while (!isReady()) await new Promise((resolve) => setTimeout(resolve, 100));
  return {
    url: `postgres://bench@127.0.0.1:${port}/postgres`,
    async stop() {
      await new Promise<void>((resolve) => {
        server.once("exit", () => resolve());
        server.kill("SIGINT");
      });
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.listen(0, "127.0.0.1", () => {
      const { port } = probe.address() as AddressInfo;
      probe.close(() => resolve(port));
    });
  });
}
