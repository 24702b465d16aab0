import { randomBytes } from "node:crypto";

const POOL_BYTES = 16 * 256;
let pool = Buffer.alloc(0);
let used = 0;

/** A few random bytes. One draw from the system's randomness serves hundreds of callers, and no byte serves two. */
export function randomPart(bytes: number): Buffer {
  if (used + bytes > pool.length) {
    pool = randomBytes(POOL_BYTES);
    used = 0;
  }
  used += bytes;
  return pool.subarray(used - bytes, used);
}

/** 22 url-safe characters holding 128 random bits. */
export function randomToken(): string {
  return randomPart(16).toString("base64url");
}

/** An identifier that says what it identifies: `crl_job_…`, `crl_s3f_…`. */
export function newUid<const Prefix extends string>(prefix: Prefix): `crl_${Prefix}_${string}` {
  return `crl_${prefix}_${randomToken()}`;
}
