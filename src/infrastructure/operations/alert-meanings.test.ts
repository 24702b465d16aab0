import { expect, test } from "vitest";
import { alertMeanings, meaningsIn } from "./alert-meanings.ts";

test("every warning of the handbook is explained by its identifier, with what to do", () => {
  const meanings = alertMeanings();
  const named = (identifier: string) => meanings.find((each) => each.identifier === identifier);
  expect(meanings.length).toBeGreaterThan(60);
  expect(named("worker:buried")).toEqual({
    identifier: "worker:buried",
    section: "Workers and jobs",
    means: "A worker fell silent for a minute; its jobs were given to others.",
    remedy: "See why it died: memory, a kill, the machine.",
  });
  expect(named("quarantine:{queue}")).toMatchObject({ means: expect.stringContaining("set aside") });
  expect(JSON.stringify(meanings)).not.toMatch(/\]\(/);
  expect(meanings.some(({ identifier }) => identifier.includes("/api/"))).toBe(false);
});

test("links in explanations keep their words, and a page without warnings explains none", () => {
  const page = "## Warnings\n### Bells\n| `bells:{name}` | See [the tower](tower.md). | Ring \\| wait. |\n";
  expect(meaningsIn(page)).toEqual([
    { identifier: "bells:{name}", section: "Bells", means: "See the tower.", remedy: "Ring | wait." },
  ]);
  expect(meaningsIn("")).toEqual([]);
});
