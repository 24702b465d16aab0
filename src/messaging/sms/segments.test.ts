import fc from "fast-check";
import { expect, test } from "vitest";
import { segmentsOf } from "./segments.ts";

const counted = (body: string) => {
  const { encoding, units, segments } = segmentsOf(body);
  return [encoding, units, segments];
};

test("a text of usual letters has 160 places in one piece and 153 in each of several", () => {
  expect(counted("a".repeat(160))).toEqual(["GSM-7", 160, 1]);
  expect(counted("a".repeat(161))).toEqual(["GSM-7", 161, 2]);
  expect(counted("a".repeat(306))).toEqual(["GSM-7", 306, 2]);
  expect(counted("a".repeat(307))).toEqual(["GSM-7", 307, 3]);
  expect(counted("Grüße aus Århus")).toEqual(["GSM-7", 15, 1]);
});

test("one unusual sign makes every place of a text twice as wide, and is named", () => {
  expect(counted("é".repeat(70))).toEqual(["GSM-7", 70, 1]);
  expect(counted("ê".repeat(70))).toEqual(["UCS-2", 70, 1]);
  expect(counted("ê".repeat(71))).toEqual(["UCS-2", 71, 2]);
  expect(segmentsOf("it’s time – it’s here").unusual).toEqual(["’", "–"]);
});

test("signs that take two places are not cut in half", () => {
  expect(counted("€".repeat(80))).toEqual(["GSM-7", 160, 1]);
  // 76 signs fill 152 of 153 places, so 153 signs need a third piece.
  expect(counted("€".repeat(153))).toEqual(["GSM-7", 306, 3]);
  expect(counted("\u{1f600}".repeat(35))).toEqual(["UCS-2", 70, 1]);
  expect(counted("\u{1f600}".repeat(67))).toEqual(["UCS-2", 134, 3]);
});

test("pieces are as many as the places need, give or take those that a piece ends early", () => {
  const signs = fc.constantFrom("a", "€", "ê", "\u{1f600}", "\n", "{");
  fc.assert(
    fc.property(fc.array(signs, { minLength: 1, maxLength: 600 }), (some) => {
      const { encoding, units, segments } = segmentsOf(some.join(""));
      const joined = encoding === "GSM-7" ? 153 : 67;
      const alone = encoding === "GSM-7" ? 160 : 70;
      if (units <= alone) expect(segments).toBe(1);
      else {
        expect(segments).toBeGreaterThanOrEqual(Math.ceil(units / joined));
        expect(segments).toBeLessThanOrEqual(Math.ceil(units / (joined - 1)));
      }
    }),
  );
});
