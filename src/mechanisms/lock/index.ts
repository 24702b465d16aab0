export { lockErrors } from "./errors.ts";
export { FENCED_CODE, type Fence, type Fenced, fenced, unlessFenced } from "./fence.ts";
export type { Lock } from "./held.ts";
export { forceRelease, listLocks, type PresentLock } from "./inspect.ts";
export { basicLock, jobLock, lockKeys, OWNER_LEASE, OwnerLock, ownerLock, tokenLock } from "./keys.ts";
export type { LockKindName } from "./kinds.ts";
export { type LockLease, type LockOptions, Locks } from "./locks.ts";
export { acquire, acquireToken, delIfMatch, release, renew, renewToken } from "./scripts.ts";
