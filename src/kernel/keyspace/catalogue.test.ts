import { createRequire } from "node:module";
import fc from "fast-check";
import { expect, test } from "vitest";
import { Catalogue } from "./catalogue.ts";
import { text } from "./codec.ts";
import { channel, list, string } from "./declare.ts";
import { family, planOf } from "./family.ts";
import { clusterTopology, standaloneTopology } from "./topology.ts";

const slotOf = createRequire(import.meta.url)("cluster-key-slot") as (key: string) => number;
const key = <const P extends string>(pattern: P, shared = false) => list(pattern, text, { doc: "a list", shared });

const jobs = family("jobs", {
  hot: key("jobs:hot", true),
  category: key("jobs:hot:{category}", true),
  workers: key("jobs:workers"),
});
const sms = family("sms", {
  toSend: key("sms:to_send"),
  item: key("sms:pending:{sid}"),
  purge: channel("ps:sms", text, { doc: "purge" }),
});
const event = family(
  "event",
  { seats: key("event:seats:{event_id}"), names: key("event:names") },
  { shardBy: "event_id" },
);
const catalogue = new Catalogue([
  { name: "jobs", keys: [jobs] },
  { name: "sms", keys: [sms] },
  { name: "events", keys: [event] },
]);

test("a name belongs to the most specific pattern that fits", () => {
  const own = family("f", {
    any: key("users:{sub}:{what}"),
    lock: key("users:{sub}:lock"),
    counts: key("users:counts:{what}"),
    both: key("users:counts:lock"),
    open: key("{sub}:counts:lock:now"),
    closed: key("users:{a}:{b}:{c}"),
  });
  const { match } = bound(new Catalogue([{ name: "d", keys: [own] }]));
  expect(match("users:1:x")?.entry.pattern).toBe("users:{sub}:{what}");
  expect(match("users:1:lock")?.entry.pattern).toBe("users:{sub}:lock");
  expect(match("users:counts:x")?.entry.pattern).toBe("users:counts:{what}");
  expect(match("users:counts:lock")?.entry.pattern).toBe("users:counts:lock");
  expect(match("users:counts:lock:now")?.entry.pattern).toBe("{sub}:counts:lock:now");
  expect(match("users:1:x")?.parameters).toEqual({ sub: "1", what: "x" });
  expect(match("users")).toBeUndefined();
});

function bound(of: Catalogue) {
  return { match: (name: string) => of.match(name) };
}

test("two declarations of the same pattern stop the start, whatever their parameters are called", () => {
  const [one, two] = [family("a", { k: key("x:{sub}") }), family("b", { k: key("x:{uid}") })];
  expect(() => new Catalogue([{ name: "d", keys: [one, two] }])).toThrow(/x:\{uid\} is declared twice/);
});

test("a key and a channel may have the same name, and are told apart", () => {
  const own = family("a", { k: key("x"), c: channel("x", text, { doc: "c" }) });
  const both = new Catalogue([{ name: "d", keys: [own] }]);
  expect(both.match("x")?.entry.kind).toBe("key");
  expect(both.matchChannel("x")?.entry.kind).toBe("channel");
  expect(catalogue.match("ps:sms")).toBeUndefined();
});

test("a family may be declared by several domains, but with one sharding only", () => {
  const [one, two] = [family("f", { a: key("a") }), family("f", { b: key("b") })];
  const split = new Catalogue([
    { name: "one", keys: [one] },
    { name: "two", keys: [two] },
  ]);
  expect(split.families).toHaveLength(1);
  expect(split.match("b")?.entry.domain).toBe("two");
  const sharded = family("f", { c: key("c:{x}") }, { shardBy: "x" });
  expect(() => new Catalogue([{ name: "d", keys: [one, sharded] }])).toThrow(/two shardings/);
});

test("only what family made is a family", () => {
  expect(() => planOf({})).toThrow(/family\(name/);
  expect(planOf(sms)).toMatchObject({ name: "sms", shardBy: undefined });
});

test("a key inside its family keeps what was declared of it", () => {
  const own = family("f", { k: string("k:{a}", text, { doc: "why", secret: true }) });
  expect({ ...own.k }).toMatchObject({ pattern: "k:{a}", type: "string", family: "f", secret: true, doc: "why" });
});

test("standalone names are the documented names", () => {
  expect(standaloneTopology.key("sms:to_send")).toBe("sms:to_send");
  expect(standaloneTopology.copies("jobs:hot")).toEqual(["jobs:hot"]);
});

const topology = clusterTopology(catalogue);

test("on a Cluster all keys of a script call share a slot, the shared ones included", () => {
  fc.assert(
    fc.property(fc.stringMatching(/^[a-z0-9]{1,12}$/), fc.stringMatching(/^[a-z0-9]{1,12}$/), (sid, other) => {
      const rendered = topology.scriptKeys([sms.toSend(), jobs.hot(), sms.item({ sid }), sms.item({ sid: other })]);
      expect(new Set(rendered.map(slotOf)).size).toBe(1);
      expect(rendered.map(topology.documented)).toEqual([
        "sms:to_send",
        "jobs:hot",
        `sms:pending:${sid}`,
        `sms:pending:${other}`,
      ]);
      expect(topology.key(sms.item({ sid }))).toBe(rendered[2]);
    }),
    { numRuns: 50 },
  );
});

test("a sharded family is spread over slots by its parameter", () => {
  expect(topology.key(event.seats({ event_id: 42 }))).toBe("{event:42}:event:seats:42");
  expect(topology.key(event.names())).toBe("{event}:event:names");
  const slots = Array.from({ length: 50 }, (_, id) => slotOf(topology.key(event.seats({ event_id: id }))));
  expect(new Set(slots).size).toBeGreaterThan(40);
  expect(() => topology.scriptKeys([event.seats({ event_id: 1 }), event.seats({ event_id: 2 })])).toThrow(/one family/);
});

test("a shared key has a copy in every family, and each is where that family's scripts write", () => {
  expect(topology.copies(jobs.hot())).toEqual(["{jobs}:jobs:hot", "{sms}:jobs:hot", "{event}:jobs:hot"]);
  expect(topology.copies(jobs.hot())).toContain(topology.scriptKeys([sms.toSend(), jobs.hot()])[1]);
  expect(topology.copies(sms.toSend())).toEqual(["{sms}:sms:to_send"]);
  expect(topology.scriptKeys([jobs.hot(), jobs.category({ category: 1 })])).toEqual([
    "{jobs}:jobs:hot",
    "{jobs}:jobs:hot:1",
  ]);
});

test("a sharded script cannot write to a shared key, because no reader would look into its shard", () => {
  expect(() => topology.scriptKeys([event.seats({ event_id: 1 }), jobs.hot()])).toThrow(/shared key jobs:hot/);
});

test("a script over two families is refused, and so is a name that nobody declared", () => {
  expect(() => topology.scriptKeys([sms.toSend(), jobs.workers()])).toThrow(/sms and jobs/);
  expect(() => topology.key("nobody:knows")).toThrow(/no declared key pattern/);
});
