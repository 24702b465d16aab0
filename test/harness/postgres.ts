import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";

export interface TemporaryPostgres {
  readonly url: string;
  readonly pid: number;
  stop(): Promise<void>;
}

/** Where the newest installed Postgres server has its programs; undefined where none is installed. */
export function findPostgres(): string | undefined {
  const root = "/usr/lib/postgresql";
  if (!existsSync(root)) return undefined;
  const versions = readdirSync(root).sort((a, b) => Number(b) - Number(a));
  return versions.map((version) => join(root, version, "bin")).find((bin) => existsSync(join(bin, "postgres")));
}

/**
 * A Postgres server of the caller's own in a temporary folder, answering on a unix socket only. It refuses to run as
 * root; there it runs as the `postgres` user that its package made.
 */
export async function startPostgres(bin: string): Promise<TemporaryPostgres> {
  const directory = mkdtempSync(join(tmpdir(), "carillon-postgres-"));
  const data = join(directory, "data");
  const asRoot = userInfo().uid === 0;
  const idOf = (flag: string) => Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8" }));
  const identity = asRoot ? { uid: idOf("-u"), gid: idOf("-g") } : {};
  if (asRoot) execFileSync("chown", ["postgres", directory]);
  const options = { ...identity, cwd: directory, stdio: "ignore" as const };
  execFileSync(join(bin, "initdb"), ["-D", data, "-A", "trust", "-U", "carillon", "-E", "UTF8", "--no-sync"], options);
  const server = spawn(
    join(bin, "postgres"),
    ["-D", data, "-c", "listen_addresses=", "-c", `unix_socket_directories=${directory}`, "-c", "fsync=off"],
    options,
  );
  const isReady = () => {
    try {
      execFileSync(join(bin, "pg_isready"), ["-h", directory], { stdio: "ignore" });
      return true;
    } catch {
      return false;
    }
  };
  while (!isReady()) {
    if (server.exitCode !== null) throw new Error(`${bin}/postgres did not start`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return {
    pid: server.pid!,
    url: `postgres://carillon@localhost/postgres?host=${encodeURIComponent(directory)}`,
    async stop() {
      await new Promise<void>((resolve) => {
        server.once("exit", () => resolve());
        server.kill("SIGINT");
      });
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
