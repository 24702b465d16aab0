import { existsSync } from "node:fs";
import { join, posix } from "node:path";
import { test } from "vitest";
import { expectNone, filesIn, filesInRoot, read, root } from "./repository.ts";

const pages = [...filesInRoot(), ...filesIn("docs", ".github")].filter((file) => file.endsWith(".md"));

/** Links and images of a page, outside of code. */
function linksOf(page: string): string[] {
  const prose = read(page)
    .replace(/^(```|~~~)[\s\S]*?^\1/gm, "")
    .replace(/`[^`\n]*`/g, "");
  const inline = [...prose.matchAll(/\]\(\s*<?([^)\s>]+)>?(?:\s+"[^"]*")?\s*\)/g)].map(([, target]) => target!);
  const references = [...prose.matchAll(/^\s*\[[^\]]+\]:\s*(\S+)/gm)].map(([, target]) => target!);
  const html = [...prose.matchAll(/\b(?:href|src)="([^"]+)"/g)].map(([, target]) => target!);
  return [...inline, ...references, ...html].filter((target) => !/^[a-z][a-z0-9+.-]*:/i.test(target));
}

/** The anchors that a page's headings get where it is shown. */
function anchorsOf(page: string): Set<string> {
  const seen = new Map<string, number>();
  const headings = [
    ...read(page)
      .replace(/^(```|~~~)[\s\S]*?^\1/gm, "")
      .matchAll(/^#{1,6}\s+(.+?)\s*#*$/gm),
  ];
  return new Set(
    headings.map(([, heading]) => {
      const words = heading!
        .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
        .toLowerCase()
        .replace(/[^\p{L}\p{N}\s_-]/gu, "")
        .replace(/\s/g, "-");
      const before = seen.get(words) ?? 0;
      seen.set(words, before + 1);
      return before === 0 ? words : `${words}-${before}`;
    }),
  );
}

test("every relative link of the documentation leads somewhere", () => {
  const faults = pages.flatMap((page) =>
    linksOf(page).flatMap((target) => {
      const [path, anchor] = target.split("#") as [string, string | undefined];
      const file = path === "" ? page : posix.normalize(posix.join(posix.dirname(page), decodeURIComponent(path)));
      if (!existsSync(join(root, file))) return [`${page} links to ${target}: there is no ${file}`];
      if (!anchor || !file.endsWith(".md")) return [];
      return anchorsOf(file).has(anchor) ? [] : [`${page} links to ${target}: ${file} has no such heading`];
    }),
  );
  expectNone("Correct or remove these links:", faults);
});

test("every page of the documentation is reached from the README", () => {
  const reached = new Set<string>();
  const follow = (page: string) => {
    if (reached.has(page) || !pages.includes(page)) return;
    reached.add(page);
    for (const target of linksOf(page)) {
      const path = target.split("#")[0]!;
      if (path) follow(posix.normalize(posix.join(posix.dirname(page), path)));
    }
  };
  follow("README.md");
  expectNone(
    "Link these from the README, or from a page it links to:",
    pages.filter((page) => page.startsWith("docs/") && !reached.has(page)),
  );
});
