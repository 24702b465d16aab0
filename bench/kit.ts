import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { cpus, tmpdir, totalmem } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { openRedis, type RedisConnection, startRedisServer } from "../src/kernel/redis/index.ts";

/**
 * What every benchmark shares. Both sides run in one process on the same server, in alternating order from round to
 * round, so that neither always meets the warm machine; the medians are compared and the raw rounds are kept.
 */
export interface Row {
  readonly metric: string;
  readonly unit: string;
  readonly ours: number;
  readonly peer: number;
  readonly peerName: string;
  /** How many times better ours is: above 1 means ahead, whichever direction is better. */
  readonly ratio: number;
  readonly rounds: { readonly ours: readonly number[]; readonly peer: readonly number[] };
}

export interface Comparison {
  readonly metric: string;
  readonly unit: string;
  readonly peerName: string;
  /** Default: a higher number is better, as for rates. Durations and sizes say "lower". */
  readonly better?: "higher" | "lower";
  /** One round of our side; answers its number, such as operations per second. */
  ours(): Promise<number>;
  peer(): Promise<number>;
}

/** Runs both sides `rounds` times after one warm-up of each, swapping who goes first every round. */
export async function measure(rounds: number, comparison: Comparison): Promise<Row> {
  const ours: number[] = [];
  const peer: number[] = [];
  await comparison.peer();
  await comparison.ours();
  for (let round = 0; round < rounds; round++) {
    const sides = [
      async () => void ours.push(await comparison.ours()),
      async () => void peer.push(await comparison.peer()),
    ];
    if (round % 2 === 1) sides.reverse();
    for (const side of sides) await side();
  }
  const [a, b] = [median(ours), median(peer)];
  return {
    metric: comparison.metric,
    unit: comparison.unit,
    ours: a,
    peer: b,
    peerName: comparison.peerName,
    ratio: comparison.better === "lower" ? b / a : a / b,
    rounds: { ours, peer },
  };
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** How many of `count` things per second `work` does. */
export async function perSecond(count: number, work: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work();
  return count / ((performance.now() - started) / 1000);
}

/** How many milliseconds `work` takes. */
export async function milliseconds(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work();
  return performance.now() - started;
}

export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memory: string;
  readonly node: string;
}

export function machine(): Machine {
  return {
    cpu: cpus()[0]?.model.trim() ?? "unknown",
    cores: cpus().length,
    memory: `${(totalmem() / 2 ** 30).toFixed(1)} GiB`,
    node: process.version,
  };
}

export function printTable(title: string, rows: readonly Row[]): void {
  const cells = [
    ["metric", "unit", "carillon", "peer", "ratio", "peer is"],
    ...rows.map((row) => [
      row.metric,
      row.unit,
      readable(row.ours),
      readable(row.peer),
      `${row.ratio.toFixed(2)}x`,
      row.peerName,
    ]),
  ];
  const widths = cells[0]!.map((_, column) => Math.max(...cells.map((line) => line[column]!.length)));
  const numeric = new Set([2, 3, 4]);
  const print = (line: readonly string[]) =>
    console.log(
      line
        .map((cell, column) => (numeric.has(column) ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!)))
        .join("  ")
        .trimEnd(),
    );
  console.log(`\n${title}\n`);
  for (const [index, line] of cells.entries()) {
    print(line);
    if (index === 0) console.log(widths.map((width) => "-".repeat(width)).join("  "));
  }
  console.log();
}

const began = performance.now();

/** Says how far a benchmark is, for whoever waits for it. */
export function say(text: string): void {
  const seconds = Math.round((performance.now() - began) / 1000);
  console.log(`  ${String(seconds).padStart(4)} s  ${text}`);
}

/** The short form of a number. */
export function readable(value: number): string {
  return value >= 100 ? Math.round(value).toLocaleString("en-US") : value.toPrecision(3);
}

/** Writes `bench/results/{name}.json`: the rows, the machine, and whatever else explains the numbers. */
export function writeResults(
  name: string,
  rows: readonly Row[],
  meta: Readonly<Record<string, unknown>> = {},
  folder = join(repository(), "bench", "results"),
): string {
  mkdirSync(folder, { recursive: true });
  const path = join(folder, `${name}.json`);
  writeFileSync(path, `${JSON.stringify({ name, machine: machine(), ...meta, rows }, null, 2)}\n`);
  return path;
}

/** Prints and writes; what every benchmark's `run` ends with. */
export function runBench(
  name: string,
  title: string,
  rows: readonly Row[],
  meta: Readonly<Record<string, unknown>> = {},
): readonly Row[] {
  printTable(title, rows);
  writeResults(name, rows, meta);
  return rows;
}

export interface TemporaryRedis {
  readonly socketPath: string;
  readonly version: string;
  /** A connection of ours, with every declared script loaded. */
  connect(): Promise<RedisConnection>;
  close(): Promise<void>;
}

/** A Redis of this benchmark's own on a unix socket, without persistence; gone after `close`. */
export async function temporaryRedis(
  options: { persistence?: "always" | "everysec" | "off" } = {},
): Promise<TemporaryRedis> {
  const directory = mkdtempSync(join(tmpdir(), "carillon-bench-"));
  const server = await startRedisServer({ directory, persistence: options.persistence ?? "off" });
  // A benchmark that fails halfway must not leave its server behind.
  const onExit = () => void (server.pid && process.kill(server.pid, "SIGKILL"));
  process.once("exit", onExit);
  const connections: RedisConnection[] = [];
  const connect = async () => {
    const connection = openRedis({ kind: "socket", path: server.socketPath });
    connections.push(connection);
    await connection.ready();
    return connection;
  };
  const first = await connect();
  const information = await first.commands.info("server");
  return {
    socketPath: server.socketPath,
    version: /redis_version:(\S+)/.exec(information)?.[1] ?? "unknown",
    connect,
    async close() {
      for (const connection of connections) await connection.close();
      process.off("exit", onExit);
      await server.kill();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** The version of an installed peer. */
export function peerVersion(packageName: string): string {
  const file = join(repository(), "bench", "node_modules", packageName, "package.json");
  return (JSON.parse(readFileSync(file, "utf8")) as { version: string }).version;
}

/** The repository's folder, wherever the compiled benchmark stands inside it. */
export function repository(): string {
  for (let folder = dirname(fileURLToPath(import.meta.url)); folder !== dirname(folder); folder = dirname(folder))
    try {
      const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as { name?: string };
      if (manifest.name === "carillon") return folder;
    } catch {}
  return process.cwd();
}
