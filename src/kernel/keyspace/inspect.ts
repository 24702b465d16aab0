import type { Redis } from "ioredis";
import { defineScript } from "../redis/script.ts";

/** What one key on a server is right now, with a bounded sample of its value. */
export interface Inspected {
  /** The name as the server has it; a name that is not UTF-8 keeps replacement characters. */
  readonly name: string;
  /** `none` when the key is gone by now. */
  readonly type: string;
  /** Milliseconds left, -1 without a TTL. */
  readonly pttl: number;
  readonly bytes: number;
  /** Bytes of a string, elements of a collection. */
  readonly length: number;
  /** Undefined when the value was too large to read. */
  readonly sample: Sample | undefined;
  /** The sample holds everything. */
  readonly whole: boolean;
}

/** Elements of the value; a hash alternates field and value; a stream has one such list per entry. */
export type Sample = readonly (Buffer | readonly Buffer[])[];

/** How much of each value is read. */
export interface Depth {
  /** Of collections. */
  readonly elements: number;
  /** Hashes up to this size are read whole, because a shape with certain fields cannot be judged by some of them. */
  readonly fields: number;
  readonly stringBytes: number;
  /** What MEMORY USAGE looks at; 0 weighs every element, which takes long for large keys. */
  readonly usageSamples: number;
}

export const SAMPLED: Depth = { elements: 32, fields: 512, stringBytes: 1024 * 1024, usageSamples: 5 };
export const DEEP: Depth = { elements: 5_000, fields: 5_000, stringBytes: 32 * 1024 * 1024, usageSamples: 0 };

const PAGE = 1_000;
const REPLY_BYTES = 4 * 1024 * 1024;

export const inspectScript = defineScript({
  name: "keyspace.inspect",
  file: new URL("./scripts/inspect.lua", import.meta.url),
  keys: [],
  args: ["max_elements", "max_fields", "max_bytes", "usage_samples", "reply_bytes", "...names"],
  idempotent: true,
  reply: (raw: unknown) => raw as RawInspected[],
});

type RawInspected = [type: Buffer, pttl: number, bytes: number, length: number, sample: Sample | null];

interface Page {
  /** Where the next page begins; "0" after the last. */
  readonly cursor: string;
  readonly keys: readonly Inspected[];
}

/**
 * Every key of one server, a page at a time. While the caller works on a page the server prepares the next one; no more
 * than two pages are in memory, however many keys there are.
 */
export async function* scanPages(client: Redis, depth: Depth): AsyncGenerator<readonly Inspected[]> {
  let ahead: Promise<Page> | undefined = readPage(client, "0", depth);
  while (ahead) {
    const { cursor, keys }: Page = await ahead;
    ahead = cursor === "0" ? undefined : readPage(client, cursor, depth);
    // A caller that stops early never awaits the page ahead; its failure is then nobody's concern.
    ahead?.catch(() => {});
    yield keys;
  }
}

async function readPage(client: Redis, from: string, depth: Depth): Promise<Page> {
  const [cursor, found] = await client.scanBuffer(from, "COUNT", PAGE);
  // SCAN may give a name twice while its table grows; within a page that is easily seen.
  const names = [...new Map(found.map((name) => [name.toString("latin1"), name])).values()];
  const keys: Inspected[] = [];
  while (keys.length < names.length)
    keys.push(...(await inspect(client, names.slice(keys.length, keys.length + PAGE), depth)));
  return { cursor: cursor.toString(), keys };
}

/** What the named keys are. Answers at least one, and fewer than asked for when their samples are large. */
export async function inspect(
  client: Redis,
  names: readonly (Buffer | string)[],
  depth: Depth,
): Promise<readonly Inspected[]> {
  const args = [depth.elements, depth.fields, depth.stringBytes, depth.usageSamples, REPLY_BYTES, ...names];
  const raw = await callReadOnly(client, args);
  return raw.map(([kind, pttl, bytes, counted, sample], index) => {
    const type = kind.toString("latin1");
    const read = sample === null ? 0 : lengthOf(type, sample);
    const length = counted < 0 ? read : counted;
    const name = names[index]!.toString("utf8");
    return { name, type, pttl, bytes, length, sample: sample ?? undefined, whole: sample !== null && read >= length };
  });
}

function lengthOf(type: string, sample: Sample): number {
  if (type === "string") return (sample[0] as Buffer).length;
  return type === "hash" ? sample.length / 2 : sample.length;
}

/** The client has this method, its type declarations do not. `callBuffer` would drop the command's name when pipelined. */
interface ReadOnlyScripts {
  evalsha_roBuffer(sha: string, keyCount: number, ...args: readonly (string | number | Buffer)[]): Promise<unknown>;
}

/** By the read-only form of EVALSHA, and with replies as bytes: values need not be text. */
async function callReadOnly(client: Redis, args: readonly (string | number | Buffer)[]): Promise<RawInspected[]> {
  const call = () => (client as unknown as ReadOnlyScripts).evalsha_roBuffer(inspectScript.sha, 0, ...args);
  try {
    return (await call()) as RawInspected[];
  } catch (error) {
    if (!(error instanceof Error) || !error.message.startsWith("NOSCRIPT")) throw error;
    await client.script("LOAD", inspectScript.lua);
    return (await call()) as RawInspected[];
  }
}
