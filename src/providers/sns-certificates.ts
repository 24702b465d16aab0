import { type KeyObject, X509Certificate } from "node:crypto";
import type { Clock } from "../kernel/clock.ts";
import { type ExchangeSurroundings, exchange } from "./http-exchange.ts";

export type CertificateAnswer =
  | { readonly ok: true; readonly key: KeyObject }
  /** `unavailable`: ask again later. `unusable`: this certificate will not become better. */
  | { readonly ok: false; readonly fault: "unavailable" | "unusable"; readonly reason: string };

interface Kept {
  readonly key: KeyObject;
  readonly validFrom: number;
  readonly validTo: number;
  readonly until: number;
}

const DOWNLOAD_TIMEOUT = 5;
const LONGEST_CERTIFICATE = 65_536;
const USUAL_LIFE = 600;
const [SHORTEST_LIFE, LONGEST_LIFE] = [5, 604_800];
/** Amazon uses one at a time in a region; more means that somebody makes up addresses. */
const MAX_KEPT = 16;

/**
 * The certificates that topics sign with, by their address. Only addresses that passed the pinning rule may be asked
 * for. Kept in memory as long as the server allows; envelopes that come while one is fetched wait for the same download.
 */
export class SnsCertificates {
  readonly #surroundings: ExchangeSurroundings;
  readonly #kept = new Map<string, Kept>();
  readonly #fetching = new Map<string, Promise<CertificateAnswer>>();

  constructor(surroundings: ExchangeSurroundings) {
    this.#surroundings = surroundings;
  }

  async keyAt(url: string): Promise<CertificateAnswer> {
    const { clock } = this.#surroundings;
    const kept = this.#kept.get(url);
    if (kept && clock.now() < kept.until) return usable(kept, clock);
    let fetching = this.#fetching.get(url);
    if (!fetching) {
      fetching = this.#download(url).finally(() => this.#fetching.delete(url));
      this.#fetching.set(url, fetching);
    }
    return fetching;
  }

  async #download(url: string): Promise<CertificateAnswer> {
    const { clock } = this.#surroundings;
    const answer = await exchange(
      { method: "GET", url, timeout: DOWNLOAD_TIMEOUT, longestAnswer: LONGEST_CERTIFICATE },
      this.#surroundings,
    );
    if (!answer.ok) return { ok: false, fault: answer.tooLong ? "unusable" : "unavailable", reason: answer.error };
    if (answer.status >= 500) return { ok: false, fault: "unavailable", reason: `status ${answer.status}` };
    if (answer.status !== 200) return { ok: false, fault: "unusable", reason: `status ${answer.status}` };
    try {
      const certificate = new X509Certificate(answer.body);
      const key = certificate.publicKey;
      if (key.asymmetricKeyType !== "rsa") return { ok: false, fault: "unusable", reason: "not an RSA certificate" };
      const kept: Kept = {
        key,
        validFrom: Date.parse(certificate.validFrom) / 1000,
        validTo: Date.parse(certificate.validTo) / 1000,
        until: clock.now() + lifeOf(answer.headers.get("cache-control") ?? ""),
      };
      this.#keep(url, kept);
      return usable(kept, clock);
    } catch {
      return { ok: false, fault: "unusable", reason: "not a certificate" };
    }
  }

  #keep(url: string, kept: Kept): void {
    this.#kept.delete(url);
    this.#kept.set(url, kept);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > MAX_KEPT && oldest !== undefined) this.#kept.delete(oldest);
  }
}

function usable({ key, validFrom, validTo }: Kept, clock: Clock): CertificateAnswer {
  const now = clock.now();
  if (now >= validFrom && now <= validTo) return { ok: true, key };
  return { ok: false, fault: "unusable", reason: "the certificate is not valid now" };
}

function lifeOf(cacheControl: string): number {
  if (/\bimmutable\b/i.test(cacheControl)) return LONGEST_LIFE;
  const maxAge = /\bmax-age=(\d+)/i.exec(cacheControl)?.[1];
  if (maxAge === undefined) return USUAL_LIFE;
  return Math.min(Math.max(Number(maxAge), SHORTEST_LIFE), LONGEST_LIFE);
}
