import { parse } from "node:querystring";
import fc from "fast-check";
import { expect, test } from "vitest";
import { readForm } from "./webhook-form.ts";

const byName = ([one]: readonly [string, unknown], [other]: readonly [string, unknown]) => (one < other ? -1 : 1);
const expected = (text: string) => {
  const entries = Object.entries(parse(text, "&", "=", { maxKeys: 0 })).sort(byName);
  return entries.every(([, value]) => typeof value === "string") ? entries : undefined;
};

test("a form is read as the standard library reads it, whatever it consists of", () => {
  const pieces = fc.constantFrom(
    "a",
    "B",
    "=",
    "=",
    "&",
    "&",
    "+",
    "%",
    "%2B",
    "%20",
    "%C3%A9",
    "%zz",
    "é",
    "🎉",
    "\0",
  );
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 40 }), (parts) => {
      const text = parts.join("");
      expect(readForm(Buffer.from(text))?.entries()).toEqual(expected(text));
    }),
    { numRuns: 3_000 },
  );
});

test("forms with many fields, or with none that has a value, are read in little time", () => {
  for (const count of [63, 64, 65, 30_000]) {
    const names = Array.from({ length: count }, (_, index) => `f${(index * 7_919) % count}`);
    expect(readForm(Buffer.from(names.join("&")))?.entries()).toHaveLength(count);
    expect(readForm(Buffer.from([...names, names[0]].join("&")))).toBeUndefined();
    expect(readForm(Buffer.from(names.map((name) => `${name}=${name}`).join("&")))?.get("f1")).toBe("f1");
  }
});

test("what is no text is no form, and names of the language's own are fields like any other", () => {
  expect(readForm(Buffer.from([0x61, 0x3d, 0xff]))).toBeUndefined();
  const form = readForm(Buffer.from("toString=2&__proto__=1&constructor="))!;
  expect([form.get("__proto__"), form.get("constructor"), form.get("hasOwnProperty")]).toEqual(["1", "", undefined]);
  expect(form.content).toBe("__proto__1constructortoString2");
});
