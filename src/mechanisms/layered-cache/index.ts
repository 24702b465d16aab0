export { LayeredCache } from "./cache.ts";
export { type CacheContext, LayeredCaches } from "./caches.ts";
export { type DiskEntry, DiskLayer } from "./disk.ts";
export { keys as layeredCacheKeys } from "./keys.ts";
export { type CacheMessage, type CachePlan, COLLAB, messages } from "./plan.ts";
export { cacheSettings } from "./settings.ts";
