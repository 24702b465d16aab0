import { expect, test } from "vitest";
import { Catalogue } from "./catalogue.ts";
import { integer, text } from "./codec.ts";
import { channel, expires, forever, list, mayExpire, string } from "./declare.ts";
import { family } from "./family.ts";
import { keysJson, keysReference, ttlText } from "./reference.ts";

const zebra = family("zebra", {
  b: string("zebra:b:{uid}", integer, { doc: "b | with a bar", ttl: expires(600), origin: "carillon", secret: true }),
  a: list("zebra:a", text, { doc: "a", shared: true }),
  c: channel("ps:zebra", text, { doc: "c" }),
});
const ant = family("ant", { x: string("ant:{id}", text, { doc: "x", cache: true }) }, { shardBy: "id" });
const catalogue = new Catalogue([
  { name: "zebras", keys: [zebra] },
  { name: "ants", keys: [ant] },
]);

test("the reference groups by domain in the order of the floor plan, then by family", () => {
  const lines = keysReference(catalogue).split("\n");
  expect(lines.filter((line) => line.startsWith("#"))).toEqual([
    "# Keys",
    "## zebras",
    "### Family `zebra`",
    "## ants",
    "### Family `ant`, sharded by `id`",
  ]);
  expect(lines).toContain(
    "3 key patterns and 1 channels. 1 of them, marked (+), are Carillon's own; the others are the documented keyspace.",
  );
  expect(lines).toContain("| `zebra:a` (shared) | list | text | never expires | a |");
  expect(lines).toContain("| `zebra:b:{uid}` (+) (secret) | string | integer | at most 10 min | b \\| with a bar |");
  expect(lines).toContain("| `ps:zebra` | channel | text |  | c |");
  expect(lines).toContain("| `ant:{id}` (cache) | string | text | never expires | x |");
});

test("the reference does not depend on the order of declarations", () => {
  const { a, b, c } = zebra;
  const shuffled = family("zebra", { c, b, a });
  const other = new Catalogue([
    { name: "zebras", keys: [shuffled] },
    { name: "ants", keys: [ant] },
  ]);
  expect(keysReference(other)).toBe(keysReference(catalogue));
});

test("the machine-readable list says for each declaration what programs need", () => {
  expect(keysJson(catalogue)).toEqual([
    {
      pattern: "ps:zebra",
      kind: "channel",
      type: "channel",
      family: "zebra",
      domain: "zebras",
      ttl: null,
      origin: "documented",
      doc: "c",
    },
    {
      pattern: "zebra:a",
      kind: "key",
      type: "list",
      family: "zebra",
      domain: "zebras",
      ttl: null,
      origin: "documented",
      doc: "a",
    },
    {
      pattern: "zebra:b:{uid}",
      kind: "key",
      type: "string",
      family: "zebra",
      domain: "zebras",
      ttl: 600,
      origin: "carillon",
      doc: "b | with a bar",
    },
    {
      pattern: "ant:{id}",
      kind: "key",
      type: "string",
      family: "ant",
      domain: "ants",
      ttl: null,
      origin: "documented",
      doc: "x",
    },
  ]);
});

test("rules of expiry read as words", () => {
  expect(ttlText(forever)).toBe("never expires");
  expect(ttlText(expires())).toBe("always expires");
  expect(ttlText(expires(90))).toBe("at most 90 s");
  expect(ttlText(expires(7200, "until the hour ends"))).toBe("at most 2 h (until the hour ends)");
  expect(ttlText(mayExpire(172_800))).toBe("may expire, at most 2 d");
  expect(ttlText(mayExpire())).toBe("may expire");
});
