import fc from "fast-check";
import { expect, test } from "vitest";
import { text } from "./codec.ts";
import { list, string, zset } from "./declare.ts";
import { family } from "./family.ts";
import { compilePattern } from "./pattern.ts";

const keys = family("sms", {
  toSend: list("sms:to_send", text, { doc: "waiting" }),
  pending: zset("sms:pending", text, { doc: "awaiting", score: "when to worry" }),
  item: string("sms:pending:{sid}:{part}", text, { doc: "one" }),
  day: string("sms:day:{unix_date}", text, { doc: "a day", params: { unix_date: /\d+/ } }),
  file: string("sms:file:{path}", text, { doc: "a path", params: { path: /.+/ } }),
});

test("a fixed name takes no parameters and a pattern takes exactly its own", () => {
  expect(keys.toSend()).toBe("sms:to_send");
  expect(keys.item({ sid: "SM1", part: 2 })).toBe("sms:pending:SM1:2");
  // @ts-expect-error a fixed name has no parameters
  keys.toSend({ sid: "x" });
  // @ts-expect-error part is missing
  expect(() => keys.item({ sid: "SM1" })).toThrow(/\{part\}/);
  // @ts-expect-error there is no parameter of this name
  expect(() => keys.item({ sid: "SM1", prat: "1" })).toThrow(/\{part\}/);
  // @ts-expect-error extra is not in the pattern
  keys.item({ sid: "SM1", part: "1", extra: "x" });
  // @ts-expect-error the parameters are missing altogether
  expect(() => keys.item()).toThrow(/\{sid\}/);
  // @ts-expect-error only text and numbers can stand in a name
  expect(() => keys.day({ unix_date: true })).toThrow(/must match/);
});

test("the type of the key stands in the type of its name", () => {
  const popsFrom = (name: ReturnType<typeof keys.toSend>) => name;
  popsFrom(keys.toSend());
  // @ts-expect-error a sorted set is no list
  popsFrom(keys.pending());
  // @ts-expect-error a bare text names no key
  popsFrom("sms:to_send");
});

test("a parameter that does not fit its form is refused before it becomes a name", () => {
  expect(() => keys.item({ sid: "with:colon", part: 1 })).toThrow(/must match/);
  expect(() => keys.item({ sid: "", part: 1 })).toThrow(/must match/);
  expect(() => keys.day({ unix_date: "12x" })).toThrow(/must match/);
  expect(keys.file({ path: "a:b/c" })).toBe("sms:file:a:b/c");
});

test("a refusal does not repeat the value, which may be a secret", () => {
  expect(() => keys.item({ sid: "secret:value", part: 1 })).toThrow(expect.not.stringContaining("secret:value"));
});

test("malformed patterns and forms of unknown parameters are refused at declaration", () => {
  expect(() => compilePattern("a:{B}")).toThrow(/malformed/);
  expect(() => compilePattern("a:{b")).toThrow(/malformed/);
  expect(() => compilePattern("a:{b}", { c: /x/ })).toThrow(/no parameter/);
});

test("what a pattern renders it also matches, with the same parameters", () => {
  const pattern = compilePattern("a.b:{one}:{two}:end", { two: /.+/ });
  fc.assert(
    fc.property(fc.stringMatching(/^[^:]+$/), fc.string({ minLength: 1 }), (one, two) => {
      expect(pattern.match(pattern.render({ one, two }))).toEqual({ one, two });
    }),
    { numRuns: 300 },
  );
  expect(pattern.match("axb:1:2:end")).toBeUndefined();
  expect(pattern.match("a.b:1:2:end:more")).toBeUndefined();
});
