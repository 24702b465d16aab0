/** Everything that can be wrong with a keyspace, and what to do about it. */
export const FINDING_KINDS = {
  unknown_key: "no declared pattern fits the name: a foreign application shares this Redis, or an old version left it",
  wrong_type: "the key holds another Redis type than declared: rename it away and the family works again",
  undecodable_value: "the value, or an element of it, does not have the declared shape",
  missing_ttl: "the key should expire and never will: set a TTL, or delete it",
  forbidden_ttl: "the key should stay and will expire: PERSIST it",
  excessive_ttl: "the key lives longer than its declaration allows",
  broken_invariant: "a rule over several keys does not hold",
} as const;

export type FindingKind = keyof typeof FINDING_KINDS;

export interface Finding {
  readonly kind: FindingKind;
  /** The declared pattern; the invariant's name for a broken invariant; null for an unknown key. */
  readonly pattern: string | null;
  /** Null where the name itself is secret, and for invariants. */
  readonly key: string | null;
  readonly detail: string;
}

/** Collects findings: all are counted, and the first few of each kind and pattern are kept. */
export class Findings {
  readonly #kept: Finding[] = [];
  readonly #counts = new Map<string, { kind: FindingKind; pattern: string | null; count: number }>();
  readonly #shown: number;

  constructor(shown: number) {
    this.#shown = shown;
  }

  add(finding: Finding): void {
    const group = `${finding.kind} ${finding.pattern}`;
    const counted = this.#counts.get(group) ?? { kind: finding.kind, pattern: finding.pattern, count: 0 };
    counted.count += 1;
    this.#counts.set(group, counted);
    if (counted.count <= this.#shown) this.#kept.push(finding);
  }

  get kept(): readonly Finding[] {
    return this.#kept;
  }

  get total(): number {
    return [...this.#counts.values()].reduce((sum, { count }) => sum + count, 0);
  }

  /** How many there are of each kind and pattern, most first. */
  get counts(): readonly { kind: FindingKind; pattern: string | null; count: number }[] {
    return [...this.#counts.values()].sort((a, b) => b.count - a.count);
  }
}
