import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { BadFormat, compileFormat, MissingParameter } from "./format.ts";
import type { SelectionStrategy } from "./point.ts";
import { renderMessage } from "./render.ts";
import { keepsState, select } from "./selection.ts";

const message = (uid: string, priority: number) => ({ uid, priority });
const ABC = [message("A", 1), message("B", 1), message("C", 2)];

/** The names that somebody is told one after the other. */
function series(
  strategy: SelectionStrategy,
  messages: readonly { uid: string; priority: number }[],
  times: number,
  resets: readonly number[] = [],
): readonly string[] {
  let state: unknown;
  return Array.from({ length: times }, (_, turn) => {
    const chosen = select(strategy, messages, state, { reset: resets.includes(turn) });
    state = chosen.state === undefined ? undefined : JSON.parse(JSON.stringify(chosen.state));
    return messages[chosen.at]!.uid;
  });
}

describe("which message comes next", () => {
  test("fixed says everything once, the lowest priority first, and then begins anew", () => {
    for (let run = 0; run < 20; run++) {
      const [one, two, three, four] = series("fixed", ABC, 4);
      expect(new Set([one, two])).toEqual(new Set(["A", "B"]));
      expect(three).toBe("C");
      expect(["A", "B"]).toContain(four);
    }
  });

  test("ordered_resettable goes up through priorities and prefers what was never said, then what was said longest ago", () => {
    const messages = [message("1a", 1), message("1b", 1), message("2", 2)];
    expect(series("ordered_resettable", messages, 5)).toEqual(["1a", "2", "1b", "2", "1a"]);
    expect(series("ordered_resettable", messages, 3, [1])).toEqual(["1a", "1b", "2"]);
  });

  test("random_with_replacement keeps no state and reaches every message", () => {
    expect(keepsState("random_with_replacement")).toBe(false);
    expect(select("random_with_replacement", ABC, ["A"]).state).toBeUndefined();
    expect(new Set(series("random_with_replacement", ABC, 200))).toEqual(new Set(["A", "B", "C"]));
  });

  test("what a state remembers of messages that are gone, or states of another shape, is ignored", () => {
    expect(select("fixed", [message("A", 1)], ["gone", "A"], {}).state).toEqual(["A"]);
    expect(select("fixed", ABC, { last_priority: 3 }, { roll: () => 0 })).toEqual({ at: 0, state: ["A"] });
    const odd = select("ordered_resettable", ABC, { last_priority: 1, counter: 4, seen: { gone: 3, A: 4 } });
    expect(odd).toEqual({ at: 2, state: { last_priority: 2, counter: 5, seen: { A: 4, C: 5 } } });
    expect(select("ordered_resettable", ABC, "nonsense").at).toBe(0);
  });

  const candidates = fc
    .uniqueArray(
      fc.record({ uid: fc.string({ minLength: 1, maxLength: 3 }), priority: fc.integer({ min: -2, max: 2 }) }),
      {
        minLength: 1,
        maxLength: 8,
        selector: ({ uid }) => uid,
      },
    )
    .filter((list) => list.every(({ uid }) => uid !== "__proto__"))
    .map((list) => [...list].sort((one, other) => one.priority - other.priority));

  test("whatever the messages, fixed never repeats one before all were said", () => {
    fc.assert(
      fc.property(candidates, (messages) => {
        const told = series("fixed", messages, messages.length * 2);
        for (const round of [told.slice(0, messages.length), told.slice(messages.length)])
          expect(new Set(round).size).toBe(messages.length);
        const priorities = told
          .slice(0, messages.length)
          .map((uid) => messages.find((each) => each.uid === uid)!.priority);
        expect(priorities).toEqual([...priorities].sort((one, other) => one - other));
      }),
    );
  });

  test("whatever the messages, ordered_resettable goes round the priorities and says each message of one equally often", () => {
    fc.assert(
      fc.property(candidates, (messages) => {
        const priorities = [...new Set(messages.map(({ priority }) => priority))];
        const rounds = 6;
        const told = series("ordered_resettable", messages, priorities.length * rounds);
        const priorityOf = (uid: string) => messages.find((each) => each.uid === uid)!.priority;
        expect(told.map(priorityOf)).toEqual(Array.from({ length: rounds }, () => priorities).flat());
        for (const priority of priorities) {
          const counts = messages
            .filter((each) => each.priority === priority)
            .map(({ uid }) => told.filter((said) => said === uid).length);
          expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
        }
      }),
    );
  });
});

describe("words", () => {
  test("formats name parameters and paths, and double their braces", () => {
    const format = compileFormat("Hi {name}, {event.title} at {event.at}: {{literal}} {name}");
    expect(format.parameters).toEqual(["name", "event.title", "event.at"]);
    expect(format.render({ name: "Ana", event: { title: "Yoga", at: 7 } })).toBe("Hi Ana, Yoga at 7: {literal} Ana");
    expect(compileFormat("{flag}").render({ flag: false })).toBe("false");
  });

  test("a brace alone is refused, and a parameter that is missing or no text is named", () => {
    for (const bad of ["{", "}", "{ name }", "{1a}", "{a..b}", "{}"])
      expect(() => compileFormat(bad)).toThrow(BadFormat);
    for (const values of [{}, { a: null }, { a: {} }, { a: { b: [] } }, Object.create({ a: { b: "inherited" } })])
      expect(() => compileFormat("{a.b}").render(values)).toThrow(MissingParameter);
  });

  test("a text without braces is itself, and any text can be written with doubled ones", () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        const doubled = text.replaceAll("{", "{{").replaceAll("}", "}}");
        expect(compileFormat(doubled).render({})).toBe(text);
      }),
    );
  });

  test("values are never formats: braces in them stay as they are", () => {
    expect(compileFormat("{a}").render({ a: "{b} {{" })).toBe("{b} {{");
  });

  test("parameters of a mail are placed deep into a copy of the fixed ones, and what is missing on the way comes into being", () => {
    const fixed = { message: "hello", list: [{ title: "kept" }] };
    const rendered = renderMessage(
      "email",
      {
        priority: 1,
        uid: "crl_tpem_a",
        subject_format: "For {name}",
        subject_parameters: ["name"],
        template: "announcement",
        template_parameters_fixed: fixed,
        template_parameters_substituted: [
          { key: ["name"], format: "{name}!", parameters: ["name"] },
          { key: ["list", 0, "url"], format: "{url}", parameters: ["url"] },
          { key: ["list", 1, "url"], format: "second", parameters: [] },
          { key: ["deep", "er", 0], format: "x", parameters: [] },
          { key: ["message", "was"], format: "replaced", parameters: [] },
        ],
      },
      { name: "Ana", url: "https://a.b" },
    );
    expect(rendered).toEqual({
      subject: "For Ana",
      template: "announcement",
      template_parameters: {
        message: { was: "replaced" },
        list: [{ title: "kept", url: "https://a.b" }, { url: "second" }],
        name: "Ana!",
        deep: { er: ["x"] },
      },
    });
    expect(fixed).toEqual({ message: "hello", list: [{ title: "kept" }] });
  });

  test("a path cannot reach beyond the parameters of the mail", () => {
    const render = () =>
      renderMessage(
        "email",
        {
          priority: 1,
          uid: "crl_tpem_a",
          subject_format: "x",
          subject_parameters: [],
          template: "announcement",
          template_parameters_fixed: {},
          template_parameters_substituted: [
            { key: ["__proto__", "polluted"], format: "yes", parameters: [] },
            { key: ["constructor", "prototype", "polluted"], format: "yes", parameters: [] },
          ],
        },
        {},
      );
    render();
    expect(({} as { polluted?: string }).polluted).toBeUndefined();
  });
});
