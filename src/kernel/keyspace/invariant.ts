import type { KernelContext } from "../context.ts";

/** Something that must hold over the live keyspace at any moment, whatever crashed before. */
export interface Invariant {
  /** `jobs:running_has_worker`: what the audit prints beside a finding. */
  readonly name: string;
  readonly doc: string;
  /** The violations there are now, each as one sentence with the offending key; none when it holds. */
  check(ctx: Pick<KernelContext, "redis" | "sql" | "clock" | "config">): Promise<readonly string[]>;
}

export type InvariantContext = Parameters<Invariant["check"]>[0];

/** What was found wrong, by what it is about, so that two looks can be compared. A sentence may stand for itself. */
export type Faults = ReadonlyMap<string, string> | readonly string[];

/** Violations that are told; a broken queue may hold a million. */
const SHOWN = 100;

/** What moves during a look may look broken: only what two looks find in the same state counts. */
export function seenTwice(look: (ctx: InvariantContext) => Promise<Faults>): Invariant["check"] {
  return async (ctx) => {
    const first = byName(await look(ctx));
    if (first.size === 0) return [];
    const second = byName(await look(ctx));
    return [...first].flatMap(([about, text]) => (second.get(about) === text ? [text] : [])).slice(0, SHOWN);
  };
}

function byName(faults: Faults): ReadonlyMap<string, string> {
  return "get" in faults ? faults : new Map(faults.map((text) => [text, text]));
}
