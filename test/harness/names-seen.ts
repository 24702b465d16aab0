import { appendFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { inspectScript } from "../../src/kernel/keyspace/inspect.ts";

/**
 * Which keys and channels the tests of this process wrote and read, for the check that every declared pattern is written
 * and read by some test. Only a full run asks for it, by naming a folder; otherwise nothing is watched.
 *
 * The server itself tells what happens on it (MONITOR), so that what scripts do counts too, and a key that is merely
 * named to a script does not. The audit and the virtual clock look at every key there is, which proves nothing: they are
 * left out. So are deletions and expiry, which need no value, and keys that a test writes in place of the code that should.
 *
 * Names that differ only in numbers and ids are kept once. Matching them with the declarations is left to the end of
 * the run: loading every room in every test process would cost more than all the rest.
 */
const folder = process.env.CARILLON_NAMES_SEEN;

type Mode = "written" | "read";
type Places = "first" | "second" | "all" | "every_other";

const uses = (mode: Mode, places: Places, ...names: string[]) =>
  names.map((name) => [name, [{ mode, places }]] as const);

/** What each command does to the keys it names. */
const COMMANDS = new Map<string, readonly { readonly mode: Mode; readonly places: Places }[]>([
  ...uses("written", "first", "SETEX", "PSETEX", "APPEND"),
  ...uses("written", "first", "HSET", "HMSET", "HINCRBY", "HINCRBYFLOAT", "LPUSH", "RPUSH", "LSET", "LINSERT"),
  ...uses("written", "first", "SADD", "ZADD", "ZINCRBY", "XADD", "PFADD", "ZRANGESTORE"),
  ...uses("written", "every_other", "MSET"),
  ...uses("read", "first", "GET", "GETRANGE", "STRLEN", "LRANGE", "LINDEX", "LLEN", "LPOS", "HGET", "HMGET", "HGETALL"),
  ...uses(
    "read",
    "first",
    "HLEN",
    "HEXISTS",
    "HKEYS",
    "HVALS",
    "HSCAN",
    "SMEMBERS",
    "SISMEMBER",
    "SMISMEMBER",
    "SCARD",
  ),
  ...uses(
    "read",
    "first",
    "SSCAN",
    "SRANDMEMBER",
    "ZRANGE",
    "ZRANGEBYSCORE",
    "ZREVRANGE",
    "ZREVRANGEBYSCORE",
    "ZSCORE",
  ),
  ...uses("read", "first", "ZMSCORE", "ZCARD", "ZCOUNT", "ZSCAN", "ZRANK", "ZREVRANK", "XRANGE", "XLEN", "XREAD"),
  ...uses("read", "first", "LPOP", "RPOP", "SPOP", "ZPOPMIN", "ZPOPMAX", "GETDEL", "GETEX"),
  // How long a flag still stands is what it says.
  ...uses("read", "first", "TTL", "PTTL"),
  // Whether an element was there decides what its remover does next.
  ...uses("read", "first", "LREM", "SREM", "ZREM", "HDEL"),
  ...uses("read", "all", "MGET", "EXISTS", "SINTER", "SUNION", "SDIFF"),
  ...["LMOVE", "RPOPLPUSH", "SMOVE", "RENAME", "COPY"].map(
    (name) =>
      [
        name,
        [
          { mode: "read", places: "first" },
          { mode: "written", places: "second" },
        ],
      ] as const,
  ),
  // A counter answers what it is now.
  ...["GETSET", "HSETNX", "SETNX", "INCR", "INCRBY", "INCRBYFLOAT", "DECR", "DECRBY"].map(
    (name) =>
      [
        name,
        [
          { mode: "read", places: "first" },
          { mode: "written", places: "first" },
        ],
      ] as const,
  ),
] as const);

/** What a command does to the channels it names. */
const CHANNELS = new Map<string, { readonly mode: Mode; readonly places: Places }>([
  ["PUBLISH", { mode: "written", places: "first" }],
  ["SPUBLISH", { mode: "written", places: "first" }],
  ["SUBSCRIBE", { mode: "read", places: "all" }],
  ["SSUBSCRIBE", { mode: "read", places: "all" }],
]);

const LONGEST_NAME = 512;
/** Names stand at the beginning of a line; what follows are values. */
const LOOKED_AT = 8_192;
/** A simulation sends millions of commands, all alike: after this many nobody listens any more. */
const MOST_COMMANDS = 40_000;
/** So the script begins that lets expiry follow the virtual clock. */
const EVERY_KEY = "redis.call('KEYS', '*')";
const LINE = /^\+[\d.]+ \[\d+ ([^\]]*)\] "([A-Za-z_]+)"/;
const ARGUMENT = / "((?:[^"\\]|\\.)*)"/y;
const ESCAPED = /\\(x[0-9a-f]{2}|.)/g;

const known = new Set<string>();
let unwritten: string[] = [];

/** Two names of one shape belong to one pattern, as far as anybody can tell without the declarations. */
function shapeOf(name: string): string {
  return name.replace(/[^:]*[0-9A-Z][^:]*/g, (part) => (part.length >= 16 ? "*" : part.replace(/\d+/g, "0")));
}

function see(kind: "key" | "channel", name: string, mode: Mode): void {
  if (name === "" || name.length > LONGEST_NAME) return;
  const shape = `${mode} ${kind} ${shapeOf(name)}`;
  if (known.has(shape)) return;
  known.add(shape);
  unwritten.push(JSON.stringify([kind, name, mode]));
}

function argumentsOf(line: string, from: number): string[] {
  const found: string[] = [];
  ARGUMENT.lastIndex = from;
  for (let match = ARGUMENT.exec(line); match; match = ARGUMENT.exec(line))
    found.push(
      match[1]!.replaceAll(ESCAPED, (_, code: string) =>
        code.length > 1 ? String.fromCharCode(Number.parseInt(code.slice(1), 16)) : code,
      ),
    );
  return found;
}

function placed(args: readonly string[], places: Places): readonly string[] {
  if (places === "all") return args;
  if (places === "every_other") return args.filter((_, at) => at % 2 === 0);
  return args.slice(places === "first" ? 0 : 1, places === "first" ? 1 : 2);
}

/** Reads the lines of one server in order: a script's own line comes before those of the commands it runs. */
export class MonitorReader {
  /** What is written to keys is made up by the test itself, and proves nothing. */
  readonly #staged: boolean;
  #auditing = false;

  constructor(options: { readonly staged?: boolean } = {}) {
    this.#staged = options.staged ?? false;
  }

  read(whole: string): void {
    const line = whole.slice(0, LOOKED_AT);
    const [head, source, written] = LINE.exec(line) ?? [];
    if (head === undefined) return;
    const name = written!.toUpperCase();
    if (source !== "lua")
      this.#auditing =
        name.startsWith("EVAL") &&
        (line.includes(inspectScript.sha, head.length) || line.includes(EVERY_KEY, head.length));
    if (this.#auditing) return;
    const channel = CHANNELS.get(name);
    if (channel)
      for (const each of placed(argumentsOf(line, head.length), channel.places)) see("channel", each, channel.mode);
    if (name === "SET") {
      const args = argumentsOf(line, head.length);
      if (!this.#staged) see("key", args[0] ?? "", "written");
      // Set if absent, or give the old value: both look first.
      if (/ "(NX|XX|GET)"/i.test(line.slice(head.length))) see("key", args[0] ?? "", "read");
    }
    for (const { mode, places } of COMMANDS.get(name) ?? []) {
      if (this.#staged && mode === "written") continue;
      for (const each of placed(argumentsOf(line, head.length), places)) see("key", each, mode);
    }
  }
}

export interface Watch {
  /** Resolves when everything that was sent to the server before was seen. */
  settled(): Promise<void>;
  close(): void;
}

/** Listens to a server from now on; nothing at all unless a full run asks for it. */
export async function watchNames(
  socketPath: string,
  options: { readonly staged?: boolean } = {},
): Promise<Watch | undefined> {
  if (!folder) return undefined;
  const reader = new MonitorReader(options);
  const socket = connect(socketPath);
  const waiting = new Map<string, () => void>();
  const end = () => {
    for (const resolve of waiting.values()) resolve();
    waiting.clear();
    socket.destroy();
  };
  let rest = "";
  let seen = 0;
  const opened = new Promise<void>((resolve) => waiting.set("+OK", resolve));
  socket.setEncoding("latin1");
  socket.on("data", (chunk: string) => {
    const lines = (rest + chunk).split("\r\n");
    rest = lines.pop()!;
    for (const line of lines) {
      if (waiting.size > 0)
        for (const [mark, resolve] of waiting)
          if (line.includes(mark)) {
            waiting.delete(mark);
            resolve();
          }
      reader.read(line);
    }
    seen += lines.length;
    if (seen > MOST_COMMANDS) end();
  });
  for (const event of ["error", "close"] as const) socket.on(event, end);
  socket.write("MONITOR\r\n");
  await opened;
  let barriers = 0;
  return {
    settled: () =>
      new Promise((resolve) => {
        if (socket.destroyed) return resolve();
        const mark = `names-seen-barrier-${++barriers}`;
        waiting.set(mark, resolve);
        const other: Socket = connect(socketPath);
        other.on("error", end);
        other.end(`ECHO ${mark}\r\n`);
      }),
    close: end,
  };
}

/** Writes down what was seen since the last time. Called when a test's server closes: the process may be ended hard. */
export function writeNamesSeen(): void {
  if (!folder || unwritten.length === 0) return;
  appendFileSync(join(folder, `${process.pid}.names`), `${unwritten.join("\n")}\n`);
  unwritten = [];
}

/** What was seen and not written down yet: for the test of this file. */
export function takeNamesSeen(): unknown[] {
  const taken = unwritten.map((line) => JSON.parse(line) as unknown);
  unwritten = [];
  known.clear();
  return taken;
}
