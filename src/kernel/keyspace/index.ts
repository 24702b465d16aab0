export { canonicalJson } from "./canonical.ts";
export { Catalogue, type CatalogueEntry, type Match } from "./catalogue.ts";
export * from "./codec.ts";
export * from "./declare.ts";
export { type Family, family, planOf } from "./family.ts";
export type { Invariant } from "./invariant.ts";
export { clusterTopology, standaloneTopology, type Topology } from "./topology.ts";
