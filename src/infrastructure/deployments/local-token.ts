import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { z } from "zod";
import type { Clock } from "../../kernel/clock.ts";

/**
 * The token of this instance's turn, kept on local disk under `updater-lock-key`, because the process that takes the turn
 * is not the one that ends it. It is written before the turn is asked for, so a turn that was taken can always be given
 * back by the successor; it outlives the turn's own lease by a little, then counts as absent.
 */
const LIFETIME = 310;

const StoredToken = z.object({ token: z.string(), expires_at: z.number() });

export class LocalToken {
  readonly #path: string;
  readonly #clock: Clock;

  constructor(directory: string, repo: string, clock: Clock) {
    this.#path = join(directory, "updates", repo, "updater-lock-key");
    this.#clock = clock;
  }

  write(token: string): void {
    mkdirSync(dirname(this.#path), { recursive: true, mode: 0o700 });
    const draft = `${this.#path}.draft`;
    writeFileSync(draft, JSON.stringify({ token, expires_at: this.#clock.now() + LIFETIME }), { mode: 0o600 });
    renameSync(draft, this.#path);
  }

  read(): string | undefined {
    try {
      const stored = StoredToken.parse(JSON.parse(readFileSync(this.#path, "utf8")));
      return stored.expires_at > this.#clock.now() ? stored.token : undefined;
    } catch {
      return undefined;
    }
  }

  forget(): void {
    rmSync(this.#path, { force: true });
  }
}
