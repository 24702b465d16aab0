import type { Domain } from "./domain.ts";

/** The floor plan: every domain, in dependency order. A domain may use only those above it, through their `service.ts`. */
export const domains: readonly Domain[] = [];
