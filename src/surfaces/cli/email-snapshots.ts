import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** How rendered mails differ from the files of an earlier day that somebody reviewed. */
export interface SnapshotDifference {
  readonly added: readonly string[];
  readonly changed: readonly {
    readonly file: string;
    readonly line: number;
    readonly was: string;
    readonly is: string;
  }[];
  readonly gone: readonly string[];
}

const OURS = /^[A-Za-z][A-Za-z0-9_-]{0,63}\.\d+\.(html|txt)$/;

function reviewedIn(folder: string): ReadonlyMap<string, string> {
  let names: string[];
  try {
    names = readdirSync(folder);
  } catch {
    return new Map();
  }
  return new Map(
    names.filter((name) => OURS.test(name)).map((name) => [name, readFileSync(join(folder, name), "utf8")]),
  );
}

export function compareSnapshots(folder: string, rendered: ReadonlyMap<string, string>): SnapshotDifference {
  const reviewed = reviewedIn(folder);
  return {
    added: [...rendered.keys()].filter((file) => !reviewed.has(file)),
    changed: [...rendered].flatMap(([file, is]) => {
      const was = reviewed.get(file);
      return was === undefined || was === is ? [] : [{ file, ...firstDifference(was, is) }];
    }),
    gone: [...reviewed.keys()].filter((file) => !rendered.has(file)),
  };
}

function firstDifference(before: string, after: string): { line: number; was: string; is: string } {
  const [was, is] = [before.split("\n"), after.split("\n")];
  const at = is.findIndex((line, index) => line !== was[index]);
  const index = at === -1 ? is.length : at;
  return { line: index + 1, was: was[index] ?? "", is: is[index] ?? "" };
}

export function writeSnapshots(folder: string, rendered: ReadonlyMap<string, string>, gone: readonly string[]): void {
  mkdirSync(folder, { recursive: true });
  for (const [file, text] of rendered) writeFileSync(join(folder, file), text);
  for (const file of gone) rmSync(join(folder, file));
}
