import type { Context } from "../../jobs/context.ts";
import type { BufferedClick } from "./entries.ts";

export interface NewClick {
  readonly code: string;
  readonly click: BufferedClick;
}

/** What other rooms do when people use links. They stand below this room, so they install what they do when loaded. */
export interface ClickEffects {
  /** One call for all new uses of a group, after they were kept. Must not fail for a reason of its own. */
  clicked(ctx: Context, clicks: readonly NewClick[]): Promise<void>;
}

/** What the room of touches knows of the touches that links belong to. */
export interface LinkOwners {
  /** Which of these touches have not ended: their links are still to be claimed. */
  open(ctx: Pick<Context, "redis">, touchUids: readonly string[]): Promise<ReadonlySet<string>>;
}

let owners: LinkOwners | undefined;

/** Installs who is asked about the touches of links; answers how to take it away again. */
export function installLinkOwners(added: LinkOwners): () => void {
  owners = added;
  return () => {
    owners = undefined;
  };
}

export async function openTouches(
  ctx: Pick<Context, "redis">,
  touchUids: readonly string[],
): Promise<ReadonlySet<string>> {
  return owners && touchUids.length > 0 ? owners.open(ctx, touchUids) : new Set();
}

/** What is told of a click that was kept and is no repeat. */
const NEW: ReadonlySet<string> = new Set(["buffered", "delayed", "direct_to_db"]);
let installed: ClickEffects | undefined;

/** Installs what happens after clicks; answers how to take it away again. */
export function installClickEffects(effects: ClickEffects): () => void {
  installed = effects;
  return () => {
    installed = undefined;
  };
}

/** Uses of a group, with what became of each. */
export async function clicked(
  ctx: Context,
  group: readonly { readonly use: NewClick; readonly result?: { readonly outcome: string } }[],
): Promise<void> {
  if (!installed) return;
  const clicks = group.flatMap(({ use, result }) => (NEW.has(result?.outcome ?? "") ? [use] : []));
  if (clicks.length === 0) return;
  try {
    await installed.clicked(ctx, clicks);
  } catch (error) {
    ctx.alerts.error(error, "clicks are kept, and what should follow them failed");
  }
}
