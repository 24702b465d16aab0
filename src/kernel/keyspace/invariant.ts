import type { KernelContext } from "../context.ts";

/** Something that must hold over the live keyspace at any moment, whatever crashed before. */
export interface Invariant {
  /** `jobs:running_has_worker`: what the audit prints beside a finding. */
  readonly name: string;
  readonly doc: string;
  /** The violations there are now, each as one sentence with the offending key; none when it holds. */
  check(ctx: Pick<KernelContext, "redis" | "sql" | "clock" | "config">): Promise<readonly string[]>;
}
