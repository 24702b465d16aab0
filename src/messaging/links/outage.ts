import { join } from "node:path";
import type { Context } from "../../jobs/context.ts";
import { cacheSettings } from "../../mechanisms/layered-cache/settings.ts";
import type { LinkTarget } from "./entries.ts";
import { ClickJournal } from "./journal.ts";
import { findLinks } from "./rows.ts";
import { deskOf, type Use, type UseResult } from "./uses.ts";

/** Seconds between two looks at whether what was noted can be taken. */
const RETRY = 5;

/**
 * Links while Redis or SQL is away: who clicks is sent on, by what this process remembers of the link or else to the
 * landing page, and the click is noted on disk.
 *
 *   use ──taken──▶ answered
 *    └──Redis or SQL away──▶ noted on disk ──answered──▶ taken when they are back ──▶ removed from disk
 *
 * The disk is authoritative for what was noted. A death after noting leaves it to the next process of this instance; one
 * after taking and before removing takes it twice, and its uid makes the second time nothing.
 */
class Outage {
  readonly #ctx: Context;
  #journal: ClickJournal | undefined;

  constructor(ctx: Context) {
    this.#ctx = ctx;
  }

  async note(use: Use, cause: unknown): Promise<UseResult> {
    const { alerts } = this.#ctx;
    alerts.warning("touch_links:away", `links are followed without being counted yet: ${String(cause)}`);
    const target = deskOf(this.#ctx).memory.last(use.code) ?? (await this.#stored(use.code));
    const isClick = use.kind === "on_click" || use.kind === "post_login";
    if (isClick && !(await this.#open()?.note({ code: use.code, click: use.click })))
      alerts.warning(
        "touch_links:journal_full",
        "a click could be kept nowhere: the disk is full, or has no place for it",
      );
    return { outcome: "untracked", target };
  }

  /** Takes what was noted; answers how many uses that was. Stops at the first trouble. */
  async catchUp(): Promise<number> {
    const journal = this.#open();
    let taken = 0;
    for (let page = journal?.next() ?? []; page.length > 0; page = journal!.next()) {
      const desk = deskOf(this.#ctx);
      // A sign-in is kept under its click, which must be there before it.
      for (const kind of ["on_click", "post_login"] as const)
        await Promise.all(
          page.flatMap(({ code, click }) =>
            click.track_type === kind ? [desk.take({ kind, code, click, limited: false })] : [],
          ),
        );
      await journal!.remove(page);
      taken += page.length;
    }
    return taken;
  }

  async close(): Promise<void> {
    await this.#journal?.close();
    this.#journal = undefined;
  }

  async #stored(code: string): Promise<LinkTarget | undefined> {
    try {
      return (await findLinks(this.#ctx, [code])).get(code);
    } catch {
      return undefined;
    }
  }

  #open(): ClickJournal | undefined {
    const folder = this.#ctx.config.get(cacheSettings.folder);
    if (folder === undefined) return undefined;
    this.#journal ??= new ClickJournal(join(folder, "clicks"));
    return this.#journal;
  }
}

const outages = new WeakMap<object, Outage>();

function outageOf(ctx: Context): Outage {
  const outage = outages.get(ctx.redis) ?? new Outage(ctx);
  outages.set(ctx.redis, outage);
  return outage;
}

/** Takes a use, or notes it while that cannot be done. */
export async function takeUse(ctx: Context, use: Use): Promise<UseResult & { readonly noted?: true }> {
  try {
    return await deskOf(ctx).take(use);
  } catch (error) {
    return { ...(await outageOf(ctx).note(use, error)), noted: true };
  }
}

/** Takes what was noted while Redis or SQL was away; answers how many uses that was. */
export function catchUp(ctx: Context): Promise<number> {
  return outageOf(ctx).catchUp();
}

/** For the life of a process that answers visitors. */
export function watchOutages(ctx: Context): () => Promise<void> {
  const stop = ctx.clock.every(RETRY, async () => {
    try {
      const taken = await catchUp(ctx);
      if (taken > 0) ctx.log.info({ taken }, "clicks that were noted while Redis or SQL was away are counted now");
    } catch (error) {
      ctx.log.debug({ err: error }, "clicks stay noted");
    }
  });
  return async () => {
    stop();
    await outageOf(ctx).close();
  };
}
