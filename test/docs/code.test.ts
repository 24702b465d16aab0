import { expect, test } from "vitest";
import { settleDue } from "../../docs/examples/notes/scripts.ts";
import { expectNone, read } from "../house/repository.ts";
import { blocks, pages } from "./handbook.ts";

// The scripts are plain JavaScript without types.
const script = (name: string) => import(new URL(`../../scripts/${name}.js`, import.meta.url).href);
const { withSections } = await script("sections");
const { codeFor, pagesWithExamples } = await script("examples");
const { PAGE, performanceTables } = await script("performance");

test("the code on the pages of the handbook is that of the compiled examples", () => {
  expect(pagesWithExamples()).toContain("docs/write-a-domain.md");
  const stale = (pagesWithExamples() as string[]).filter((page) => withSections(read(page), codeFor) !== read(page));
  expectNone("Run `node scripts/examples.js` and commit what it writes:", stale);
});

test("every block of TypeScript and Lua in the handbook comes from a file that is compiled", () => {
  const sections = pages.flatMap((page) =>
    [...read(page).matchAll(/^<!-- begin: .+? -->\n([\s\S]*?)^<!-- end -->$/gm)].map(([, text]) => text!),
  );
  const faults = [...blocks("ts"), ...blocks("typescript"), ...blocks("lua")]
    .filter(({ text }) => !sections.some((section) => section.includes(text)))
    .map(({ page, text }) => `${page}: ${text.split("\n")[0]}`);
  expectNone("Put the code into docs/examples and a section around it, as scripts/examples.js explains:", faults);
});

test("a section names one declaration, several, a test or a whole file, and nothing that is not there", () => {
  expect(codeFor("examples/notes/jobs.ts#recurringJobs")).toBe(
    "```ts\nexport const recurringJobs = [recurring(expireNotes, {}, { seconds: [30] })];\n```",
  );
  expect(codeFor("examples/notes/scripts.ts#settleDue")).toMatch(
    /^```ts\nexport const settleDue = [\s\S]+\n\}\);\n```$/,
  );
  expect(codeFor("examples/notes/scripts/settle_due.lua")).toMatch(/^```lua\n-- settle_due: /);
  expect(() => codeFor("examples/notes/jobs.ts#nothing")).toThrow("declares no nothing");
  expect(() => codeFor("../test/docs/notes.test.ts#nothing")).toThrow('has no test "nothing"');
});

test("the tables of docs/performance.md are those of bench/results", () => {
  expect(performanceTables()).toMatch(/^### /);
  const stale = withSections(read(PAGE), performanceTables) === read(PAGE) ? [] : [PAGE];
  expectNone("Run `node scripts/performance.js` and commit what it writes:", stale);
});

test("no other page claims a number of operations per second", () => {
  const faults = pages
    .filter((page) => page !== PAGE)
    .filter((page) =>
      /\d[\d,.]*\s*(k )?(jobs|operations|ops|actions|requests|keys)\s*(\/|per |a )\s*s(econd)?\b/i.test(read(page)),
    );
  expectNone(`Link to ${PAGE} instead:`, faults);
});

test("the head of the example's script names the positions of its wrapper", () => {
  const head = read("docs/examples/notes/scripts/settle_due.lua")
    .split("\n")
    .filter((line) => line.startsWith("--"));
  const positions = head.flatMap((line) => /^--(?: KEYS| ARGV)?\s+\d+ +(\S+)/.exec(line)?.[1] ?? []);
  expect(positions).toEqual([...settleDue.keys, ...settleDue.args]);
  for (const part of ["Promise", "Reply", "Crash"])
    expect(head.some((line) => line.startsWith(`-- ${part}`))).toBe(true);
});
