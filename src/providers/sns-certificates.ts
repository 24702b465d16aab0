import { type KeyObject, X509Certificate } from "node:crypto";
import type { Clock } from "../kernel/clock.ts";
import type { Log } from "../kernel/log.ts";
import { CertificateShelf } from "./certificate-shelf.ts";
import { errorText } from "./failure.ts";
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

interface CertificateSurroundings extends ExchangeSurroundings {
  /** The folder where they outlive the process. */
  readonly shelf?: string | undefined;
  readonly log?: Pick<Log, "warn">;
}

/**
 * The certificates that topics sign with, by their address. Only addresses that passed the pinning rule may be asked
 * for. Kept in memory and on disk as long as the server allows; envelopes that come while one is fetched wait for the
 * same download.
 */
export class SnsCertificates {
  readonly #surroundings: CertificateSurroundings;
  readonly #shelf: CertificateShelf | undefined;
  readonly #kept = new Map<string, Kept>();
  readonly #fetching = new Map<string, Promise<CertificateAnswer>>();

  constructor(surroundings: CertificateSurroundings) {
    this.#surroundings = surroundings;
    this.#shelf = surroundings.shelf === undefined ? undefined : new CertificateShelf(surroundings.shelf);
  }

  async keyAt(url: string): Promise<CertificateAnswer> {
    const { clock } = this.#surroundings;
    const kept = this.#kept.get(url);
    if (kept && clock.now() < kept.until) return usable(kept, clock);
    let fetching = this.#fetching.get(url);
    if (!fetching) {
      fetching = this.#fetch(url).finally(() => this.#fetching.delete(url));
      this.#fetching.set(url, fetching);
    }
    return fetching;
  }

  async #fetch(url: string): Promise<CertificateAnswer> {
    const { clock, log } = this.#surroundings;
    const shelved = await this.#shelf?.get(url);
    if (shelved && clock.now() < shelved.until) {
      const answer = this.#keep(url, shelved.pem, shelved.until);
      if (answer.ok) return answer;
    }
    const downloaded = await this.#download(url);
    if (!("pem" in downloaded)) return downloaded;
    const { pem, until } = downloaded;
    const answer = this.#keep(url, pem, until);
    if (answer.ok)
      await this.#shelf
        ?.put({ url, pem, until })
        .catch((error) => log?.warn({ error: errorText(error) }, "a certificate of a topic could not be kept on disk"));
    return answer;
  }

  async #download(
    url: string,
  ): Promise<(CertificateAnswer & { ok: false }) | { readonly pem: string; readonly until: number }> {
    const { clock } = this.#surroundings;
    const answer = await exchange(
      { method: "GET", url, timeout: DOWNLOAD_TIMEOUT, longestAnswer: LONGEST_CERTIFICATE },
      this.#surroundings,
    );
    if (!answer.ok) return { ok: false, fault: answer.tooLong ? "unusable" : "unavailable", reason: answer.error };
    if (answer.status >= 500) return { ok: false, fault: "unavailable", reason: `status ${answer.status}` };
    if (answer.status !== 200) return { ok: false, fault: "unusable", reason: `status ${answer.status}` };
    const until = clock.now() + lifeOf(answer.headers.get("cache-control") ?? "");
    return { pem: answer.body.toString("latin1"), until };
  }

  #keep(url: string, pem: string, until: number): CertificateAnswer {
    const read = readCertificate(pem, until);
    if (typeof read === "string") return { ok: false, fault: "unusable", reason: read };
    this.#kept.delete(url);
    this.#kept.set(url, read);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > MAX_KEPT && oldest !== undefined) this.#kept.delete(oldest);
    return usable(read, this.#surroundings.clock);
  }
}

/** What is needed of a certificate, or why it is of no use. */
function readCertificate(pem: string, until: number): Kept | string {
  try {
    const certificate = new X509Certificate(pem);
    const key = certificate.publicKey;
    if (key.asymmetricKeyType !== "rsa") return "not an RSA certificate";
    const [validFrom, validTo] = [Date.parse(certificate.validFrom) / 1000, Date.parse(certificate.validTo) / 1000];
    return { key, validFrom, validTo, until };
  } catch {
    return "not a certificate";
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
