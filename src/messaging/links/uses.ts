import type { Context } from "../../jobs/context.ts";
import { kernelErrors } from "../../kernel/errors.ts";
import { newUid } from "../../kernel/ids.ts";
import { Gathering } from "../../mechanisms/gathering/index.ts";
import { clicked } from "./effects.ts";
import { type BufferedClick, type LinkTarget, linkExtra } from "./entries.ts";
import { CODE_WINDOW, keys, ROBOTS_KEPT, SIGNED_OUT_WINDOW, WARNING_WINDOW } from "./keys.ts";
import { LinkMemory } from "./memory.ts";
import { openDays } from "./open-days.ts";
import { click as clickScript, type UseOutcome } from "./scripts.ts";
import { settings } from "./settings.ts";
import { StoredUses } from "./sql-uses.ts";
import { linkStats } from "./stats.ts";

/**
 * A use of a link: somebody landed (`on_click`), signed in right after (`post_login`), is a robot, proves something with
 * a code (`check`), or only wants to know how it looks (`look`).
 */
export interface Use {
  readonly kind: "on_click" | "post_login" | "robot" | "check" | "look";
  readonly code: string;
  readonly click: BufferedClick;
  /** The rule that knew the robot. */
  readonly rule?: string;
  /** Limits hold for it; not for one that was noted while Redis was away. */
  readonly limited: boolean;
}

export type UseResult = {
  /** `dne`: there is no such link. `direct_to_db`: its link is stored, and so is the use. */
  readonly outcome: Exclude<UseOutcome, "go_sql"> | "direct_to_db" | "dne";
  readonly target: LinkTarget | undefined;
};

/** A use on its way. */
export interface Travelling {
  readonly use: Use;
  /** What the script says of it. */
  outcome?: UseOutcome;
  result?: UseResult;
}

const WINDOWS = [CODE_WINDOW, SIGNED_OUT_WINDOW, WARNING_WINDOW, ROBOTS_KEPT]
  .map((seconds) => seconds * 1000)
  .join(" ");
const GROUP = 500;
const MOST_TARGETS = 1_000;
/** Stands for any code in the names of keys that the script completes by itself. */
const SOME_CODE = "-";
const AWAY: ReadonlySet<string> = new Set(["reconnecting", "close", "end"]);

export function newUse(
  ctx: Pick<Context, "clock">,
  kind: Use["kind"],
  code: string,
  who: {
    readonly userSub?: string | undefined;
    readonly visitorUid?: string | undefined;
    readonly parentUid?: string;
    readonly rule?: string;
  } = {},
): Use {
  const { userSub, visitorUid, parentUid, rule } = who;
  return {
    kind,
    code,
    limited: true,
    ...(rule === undefined ? {} : { rule }),
    click: {
      uid: newUid("utlc"),
      clicked_at: ctx.clock.now(),
      ...(visitorUid === undefined ? {} : { visitor_uid: visitorUid }),
      ...(userSub === undefined ? {} : { user_sub: userSub }),
      track_type: parentUid === undefined ? "on_click" : "post_login",
      ...(parentUid === undefined ? {} : { parent_uid: parentUid }),
    },
  };
}

/**
 * Takes uses of links in groups: one script decides about those whose link waits in the buffer, SQL about the others.
 *
 *   use ──▶ asked in Redis ──▶ kept there, or refused ──▶ answered
 *                    └──link does not wait──▶ asked in SQL ──▶ stored, or there is no such link ──▶ answered
 *
 * A use is answered after its group was taken, so who got an answer is counted. Both ways have groups of their own: whoever
 * waits for SQL keeps nobody from being taken in Redis.
 */
export class UseDesk {
  readonly memory: LinkMemory;
  readonly #ctx: Context;
  readonly #waiting: Gathering<Travelling>;
  readonly #stored: Gathering<Travelling>;
  readonly #targets = new Targets();

  constructor(ctx: Context) {
    this.#ctx = ctx;
    this.memory = new LinkMemory(ctx.clock);
    const stored = new StoredUses(ctx, this.memory);
    this.#waiting = new Gathering({ most: GROUP, work: (group) => this.#work(group, () => this.#ask(group)) });
    this.#stored = new Gathering({ most: GROUP, work: (group) => this.#work(group, () => stored.settle(group)) });
  }

  async take(use: Use): Promise<UseResult> {
    const travelling: Travelling = { use };
    await this.#waiting.join(travelling);
    if (!travelling.result)
      await this.#stored.join(travelling).catch((error: unknown) => {
        // SQL failed for others of the group; what became of this one is known.
        if (!travelling.result) throw error;
      });
    return travelling.result!;
  }

  /** What follows clicks follows those that are kept, also when others of their group are not. */
  async #work(group: readonly Travelling[], settle: () => Promise<void>): Promise<void> {
    try {
      await settle();
    } finally {
      await clicked(this.#ctx, group);
    }
  }

  async #ask(group: readonly Travelling[]): Promise<void> {
    const { redis, clock, config, alerts } = this.#ctx;
    // A connection known to be lost would hold the command back until it is there again; no visitor waits that long.
    if (AWAY.has(redis.commands.status)) throw kernelErrors.redis_unavailable();
    const days = openDays(this.#ctx);
    const taken = await redis.run(
      clickScript,
      [
        keys.buffer(),
        keys.persistPurgatory(),
        keys.delayed(),
        keys.signedOutLimit(),
        keys.warningLimit(),
        linkStats.earliest(),
        keys.codeLimit({ code: SOME_CODE }),
        keys.robots({ code: SOME_CODE }),
        ...days.keys,
      ],
      [
        config.get(settings.signedOutLimit),
        WINDOWS,
        String(clock.now() + config.get(settings.delayedFirst)),
        JSON.stringify(group.map(({ use }) => this.#told(use))),
        ...days.args,
      ],
    );
    let warn = false;
    for (const [at, travelling] of group.entries()) {
      const [outcome, isReason, ...link] = taken[at]!;
      travelling.outcome = outcome;
      // A waiting link answers for itself; of others the script only knows whether their use may be taken.
      const target = this.#targets.of(link);
      if (target) this.memory.note(travelling.use.code, target, false);
      if (target || outcome === "dropped") travelling.result = { outcome: outcome as UseResult["outcome"], target };
      warn ||= isReason;
    }
    if (warn)
      alerts.warning(
        "touch_links:guessed_codes",
        "codes that nobody made are tried so often that they are dropped now",
      );
  }

  /** A use as the script takes it. */
  #told({ kind, code, click, rule, limited }: Use): readonly (string | boolean)[] {
    return [
      kind,
      code,
      click.uid,
      String(click.clicked_at),
      limited,
      this.memory.fresh(code)?.page_identifier ?? false,
      click.visitor_uid ?? false,
      click.user_sub ?? false,
      click.parent_uid ?? false,
      rule ?? false,
    ];
  }
}

/** Most links lead to the same few pages: those are read once, and remembered once for all links. */
class Targets {
  #known = new Map<string, LinkTarget>();

  of(link: readonly string[]): LinkTarget | undefined {
    if (link.length === 0) return undefined;
    const written = link.join("\n");
    const known = this.#known.get(written);
    if (known) return known;
    const [page, pageExtra, preview, previewExtra] = link;
    const target = {
      page_identifier: page!,
      page_extra: extraOf(pageExtra!),
      preview_identifier: preview!,
      preview_extra: extraOf(previewExtra!),
    };
    if (this.#known.size >= MOST_TARGETS) this.#known = new Map();
    this.#known.set(written, target);
    return target;
  }
}

/** Most links say nothing more than where they lead: there is nothing to check. What nobody can read says nothing. */
function extraOf(written: string): Readonly<Record<string, unknown>> {
  if (written === "{}") return {};
  try {
    return linkExtra.decode(Buffer.from(written));
  } catch {
    return {};
  }
}

const desks = new WeakMap<object, UseDesk>();

/** The one desk of this process. */
export function deskOf(ctx: Context): UseDesk {
  const desk = desks.get(ctx.redis) ?? new UseDesk(ctx);
  desks.set(ctx.redis, desk);
  return desk;
}
