import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { randomToken } from "../kernel/ids.ts";
import { isRecord, jsonOf } from "./http-exchange.ts";

/** A certificate as it was downloaded, and until when it need not be downloaded again. */
export interface ShelvedCertificate {
  readonly url: string;
  readonly pem: string;
  readonly until: number;
}

/** More of them than this means that somebody made up addresses. */
const MOST = 64;

/**
 * Certificates in a folder, one file an address, so that a process that starts while their server is away can judge what
 * comes. Every process of the installation may read and write it: a file is replaced whole, and what cannot be read counts
 * as absent. What it says is as trustworthy as the folder; whoever takes one from it checks it like a downloaded one.
 */
export class CertificateShelf {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  async get(url: string): Promise<ShelvedCertificate | undefined> {
    try {
      const kept = jsonOf(await readFile(this.#fileOf(url)));
      if (!isRecord(kept) || kept.url !== url || typeof kept.pem !== "string" || typeof kept.until !== "number")
        return undefined;
      return { url, pem: kept.pem, until: kept.until };
    } catch {
      return undefined;
    }
  }

  async put(certificate: ShelvedCertificate): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const unfinished = join(this.#folder, `${randomToken()}.part`);
    await writeFile(unfinished, JSON.stringify(certificate), { mode: 0o600 });
    await rename(unfinished, this.#fileOf(certificate.url));
    const files = await readdir(this.#folder);
    if (files.length > MOST) await this.#tidy(files, certificate.url);
  }

  /** Everything else goes: what is still in use is downloaded once more. */
  async #tidy(files: readonly string[], except: string): Promise<void> {
    const kept = this.#fileOf(except);
    const gone = files.map((name) => join(this.#folder, name)).filter((file) => file !== kept);
    await Promise.all(gone.map((file) => rm(file, { force: true })));
  }

  #fileOf(url: string): string {
    return join(this.#folder, `${createHash("sha256").update(url).digest("hex")}.json`);
  }
}
