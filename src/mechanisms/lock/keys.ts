import { z } from "zod";
import { expires, family, json, literal, matching, string } from "../../kernel/keyspace/index.ts";

/** Seconds that an owner-aware lock lives without renewal. */
export const OWNER_LEASE = 120;

/** What an owner-aware lock says about its holder. */
export const OwnerLock = z.strictObject({
  acquired_at: z.int(),
  hostname: z.string(),
  lock_id: z.string().regex(/^[\w-]{22}$/),
});
export type OwnerLock = z.infer<typeof OwnerLock>;

/** The value of a lock of each kind, for the declarations of every family that has one. */
export const ownerLock = json(OwnerLock, {
  canonical: true,
  shape: 'canonical JSON `{"acquired_at":int,"hostname":text,"lock_id":22 characters}`',
});
export const basicLock = literal("1");
export const tokenLock = matching(/^[\w-]{22}$/, "random token of 22 characters");

/** Declares the lock of a job that must be alone: `jobLock("bells:ring_job:lock", "job that rings")`. */
export const jobLock = <const Name extends string>(name: Name, who: string) =>
  string(name, ownerLock, { doc: `held by the one ${who}`, ttl: expires(OWNER_LEASE), lock: "owner" });

export const lockKeys = family("jobs", {
  runnerLock: string("jobs:runner:{runner}:lock", ownerLock, {
    doc: "Held by the one run of a job that must be alone and whose own family names no lock.",
    ttl: expires(OWNER_LEASE),
    origin: "carillon",
    lock: "owner",
    params: { runner: /[a-z0-9_.:-]+/ },
  }),
});
