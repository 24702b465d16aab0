import { readFileSync } from "node:fs";

/** What the handbook says of an alert. */
export interface AlertMeaning {
  /** Parts in braces vary: `quarantine:{queue}`. */
  readonly identifier: string;
  /** The heading that it stands under. */
  readonly section: string;
  readonly means: string;
  /** What to do about it. */
  readonly remedy: string;
}

const HANDBOOK = new URL("../../../docs/operations.md", import.meta.url);

let known: readonly AlertMeaning[] | undefined;

/** Every identifier that the handbook explains. The handbook comes along with the program; without it nothing is explained. */
export function alertMeanings(): readonly AlertMeaning[] {
  known ??= meaningsIn(handbook());
  return known;
}

/** The rows of its tables of warnings, which a test keeps complete. */
export function meaningsIn(page: string): readonly AlertMeaning[] {
  const warnings = page.slice(Math.max(0, page.search(/^## Warnings$/m)));
  let section = "";
  return warnings.split("\n").flatMap((line) => {
    section = /^#{2,3} (.+)$/.exec(line)?.[1] ?? section;
    const [, identifier, means, remedy] = /^\| `([^`]+:[^`]+)` \| (.+) \| (.*) \|$/.exec(line) ?? [];
    if (identifier === undefined) return [];
    return [{ identifier, section, means: plain(means!), remedy: plain(remedy!) }];
  });
}

/** Links of a handbook lead nowhere outside of it; their words stay. */
const plain = (text: string) => text.replaceAll(/\[([^\]]+)\]\([^)]*\)/g, "$1").replaceAll("\\|", "|");

function handbook(): string {
  try {
    return readFileSync(HANDBOOK, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return "";
    throw error;
  }
}
