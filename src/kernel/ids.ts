import { randomBytes } from "node:crypto";

const POOL_BYTES = 16 * 256;
let pool = Buffer.alloc(0);
let used = 0;

/** 22 url-safe characters holding 128 random bits. One draw from the system's randomness serves 256 of them. */
export function randomToken(): string {
  if (used + 16 > pool.length) {
    pool = randomBytes(POOL_BYTES);
    used = 0;
  }
  const token = pool.toString("base64url", used, used + 16);
  used += 16;
  return token;
}

/** An identifier that says what it identifies: `crl_job_…`, `crl_s3f_…`. */
export function newUid<const Prefix extends string>(prefix: Prefix): `crl_${Prefix}_${string}` {
  return `crl_${prefix}_${randomToken()}`;
}
