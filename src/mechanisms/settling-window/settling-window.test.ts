import fc from "fast-check";
import { expect, test } from "vitest";
import { VirtualClock } from "../../kernel/clock.ts";
import { Pace, sendThroughWindow } from "./index.ts";

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
const numbers = (count: number) => Array.from({ length: count }, (_, at) => at);

test("never more than the window is with the provider or unsettled, and every item is settled once with its own answer", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 0, max: 60 }),
      fc.integer({ min: 1, max: 20 }),
      fc.integer({ min: 1, max: 12 }),
      fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 1, maxLength: 20 }),
      async (count, window, groupSize, delays) => {
        let unsettled = 0;
        let settling = false;
        let at = 0;
        const wait = async () => {
          for (let left = delays[at++ % delays.length]!; left > 0; left--) await turn();
        };
        const settled: [number, string][] = [];
        const { unsent } = await sendThroughWindow<number, string>(
          { clock: new VirtualClock() },
          {
            items: numbers(count),
            window,
            groupSize,
            async send(group) {
              expect(group.length).toBeLessThanOrEqual(groupSize);
              unsettled += group.length;
              expect(unsettled).toBeLessThanOrEqual(window);
              await wait();
              return group.map((item) => `answer ${item}`);
            },
            async settle(pairs) {
              expect(settling).toBe(false);
              settling = true;
              await wait();
              settled.push(...pairs.map(({ item, answer }): [number, string] => [item, answer]));
              unsettled -= pairs.length;
              settling = false;
            },
          },
        );
        expect(unsent).toEqual([]);
        expect(settled.sort(([one], [other]) => one - other)).toEqual(
          numbers(count).map((item) => [item, `answer ${item}`]),
        );
      },
    ),
    { numRuns: 60 },
  );
});

test("answers that come while a settle call is under way are settled together, as soon as it has returned", async () => {
  const groups: number[] = [];
  let finish = () => {};
  const running = sendThroughWindow<number, true>(
    { clock: new VirtualClock() },
    {
      items: numbers(6),
      window: 6,
      groupSize: 1,
      send: async () => [true],
      settle: async (pairs) => {
        groups.push(pairs.length);
        if (groups.length === 1)
          await new Promise<void>((resolve) => {
            finish = resolve;
          });
      },
    },
  );
  await turn();
  expect(groups).toEqual([1]);
  finish();
  await running;
  expect(groups).toEqual([1, 5]);
});

test("while others wait a third of a window is settled, so that the next ones are with the provider before it is done", async () => {
  const seen: string[] = [];
  await sendThroughWindow<number, true>(
    { clock: new VirtualClock() },
    {
      items: numbers(12),
      window: 4,
      groupSize: 1,
      send: async ([item]) => {
        seen.push(`send ${item}`);
        return [true];
      },
      settle: async (pairs) => {
        seen.push(`settle ${pairs.map(({ item }) => item)}`);
        await turn();
        seen.push("settled");
      },
    },
  );
  // The first answer goes alone; afterwards two are sent while two others are being settled.
  const second = seen.indexOf("settle 1,2");
  expect(seen.slice(second, second + 5)).toEqual(["settle 1,2", "send 4", "settled", "settle 3,4", "send 5"]);
});

test("a provider that answers at once lets replies in between: thirds are settled while others are handed out", async () => {
  const [settled, handedOut]: [number[], number[]] = [[], []];
  let sent = 0;
  await sendThroughWindow<number, true>(
    { clock: new VirtualClock() },
    {
      items: numbers(1_000),
      window: 300,
      groupSize: 1,
      send: async () => {
        sent += 1;
        return [true];
      },
      settle: async (pairs) => {
        settled.push(pairs.length);
        handedOut.push(sent);
        for (let left = 4; left > 0; left--) await turn();
      },
    },
  );
  expect(settled.slice(0, 3)).toEqual([1, 100, 100]);
  // Without turns the whole window would have been with the provider before the second call began.
  expect(handedOut[1]).toBeLessThan(300);
});

test("a refill brings everything once and in order, one call at a time, whatever provider, settling and queue take", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 8 }),
      fc.array(fc.integer({ min: 0, max: 6 }), { maxLength: 8 }),
      fc.integer({ min: 0, max: 12 }),
      fc.array(fc.integer({ min: 0, max: 3 }), { minLength: 1, maxLength: 10 }),
      async (window, sizes, below, delays) => {
        let [at, next, page, fetching, unsettled] = [0, 3, 0, false, 3];
        const wait = async () => {
          for (let left = delays[at++ % delays.length]!; left > 0; left--) await turn();
        };
        const [sent, settled]: [number[], number[]] = [[], []];
        const { unsent } = await sendThroughWindow<number, number>(
          { clock: new VirtualClock() },
          {
            items: numbers(3),
            window,
            groupSize: 1,
            async send(group) {
              sent.push(...group);
              await wait();
              return group;
            },
            async settle(pairs) {
              await wait();
              unsettled -= pairs.length;
              settled.push(...pairs.map(({ item }) => item));
            },
            refill: {
              below,
              async fetch() {
                expect(fetching).toBe(false);
                expect(page).toBeLessThanOrEqual(sizes.length);
                expect(unsettled).toBeLessThanOrEqual(below);
                fetching = true;
                await wait();
                fetching = false;
                if (page === sizes.length) {
                  page += 1;
                  return "none";
                }
                const more = numbers(sizes[page++]!).map((each) => next + each);
                next += more.length;
                unsettled += more.length;
                return more;
              },
            },
          },
        );
        expect(unsent).toEqual([]);
        expect(sent).toEqual(numbers(next));
        expect(settled.toSorted((one, other) => one - other)).toEqual(numbers(next));
        expect(next).toBe(3 + sizes.reduce((sum, size) => sum + size, 0));
      },
    ),
    { numRuns: 80 },
  );
});

test("a refill that is under way at a stop is awaited, and what it brought comes back unsent", async () => {
  let arrive = (_items: readonly number[]) => {};
  let stopped = false;
  const running = sendThroughWindow<number, number>(
    { clock: new VirtualClock() },
    {
      items: [0, 1],
      window: 2,
      groupSize: 1,
      send: async (group) => group,
      settle: async () => {},
      stop: () => stopped,
      refill: { below: 1, fetch: () => new Promise((resolve) => (arrive = resolve)) },
    },
  );
  await turn();
  stopped = true;
  arrive([2, 3]);
  expect(await running).toEqual({ unsent: [2, 3] });
});

test("a refill that fails ends the passage with its error, after what was answered is settled", async () => {
  const settled: number[] = [];
  const passage = sendThroughWindow<number, number>(
    { clock: new VirtualClock() },
    {
      items: [0, 1],
      window: 2,
      groupSize: 1,
      send: async (group) => group,
      settle: async (pairs) => void settled.push(...pairs.map(({ item }) => item)),
      refill: { below: 2, fetch: () => turn().then(() => Promise.reject(new Error("the lock is lost"))) },
    },
  );
  await expect(passage).rejects.toThrow("the lock is lost");
  expect(settled).toEqual([0, 1]);
});

test("after a stop nothing more is handed out, what was out is settled, and the rest comes back in order", async () => {
  const settled: number[] = [];
  let sent = 0;
  const { unsent } = await sendThroughWindow<number, number>(
    { clock: new VirtualClock() },
    {
      items: numbers(10),
      window: 4,
      groupSize: 2,
      stop: () => sent >= 6,
      send: async (group) => {
        sent += group.length;
        return group;
      },
      settle: async (pairs) => {
        settled.push(...pairs.map(({ item }) => item));
      },
    },
  );
  expect(settled).toEqual([0, 1, 2, 3, 4, 5]);
  expect(unsent).toEqual([6, 7, 8, 9]);
});

test("a failed settle ends the passage with its error, after the requests under way have come back", async () => {
  let back = 0;
  let settles = 0;
  const passage = sendThroughWindow<number, number>(
    { clock: new VirtualClock() },
    {
      items: numbers(9),
      window: 3,
      groupSize: 1,
      async send(group) {
        for (let left = group[0]!; left >= 0; left--) await turn();
        back += 1;
        return group;
      },
      async settle() {
        settles += 1;
        throw new Error("the lock is lost");
      },
    },
  );
  await expect(passage).rejects.toThrow("the lock is lost");
  expect(back).toBe(3);
  expect(settles).toBe(1);
});

test("a send that throws leaves its group unsettled, while the answers of others are settled before the error is thrown", async () => {
  const settled: number[] = [];
  const passage = sendThroughWindow<number, number>(
    { clock: new VirtualClock() },
    {
      items: numbers(6),
      window: 3,
      groupSize: 1,
      async send(group) {
        await turn();
        if (group[0] === 1) throw new Error("a mistake in the client");
        await turn();
        return group;
      },
      settle: async (pairs) => {
        settled.push(...pairs.map(({ item }) => item));
      },
    },
  );
  await expect(passage).rejects.toThrow("a mistake in the client");
  expect(settled).toEqual([0, 2]);
});

test("a provider that answers too few of a group is an error, not a silent loss", async () => {
  const passage = sendThroughWindow<number, number>(
    { clock: new VirtualClock() },
    { items: [1, 2], window: 2, groupSize: 2, send: async () => [1], settle: async () => {} },
  );
  await expect(passage).rejects.toThrow("2 items were sent, and 1 answers came back");
});

test("no second sees more items than the pace allows, across two passages that share it", async () => {
  const clock = new VirtualClock();
  const pace = new Pace(clock, 10);
  const sentAt: number[] = [];
  const pass = (count: number) =>
    sendThroughWindow<number, number>(
      { clock },
      {
        items: numbers(count),
        window: 100,
        groupSize: 4,
        perSecond: pace,
        send: async (group) => {
          for (const _ of group) sentAt.push(clock.monotonic());
          return group;
        },
        settle: async () => {},
      },
    );
  let done = false;
  const both = pass(17)
    .then(() => pass(17))
    .then(() => {
      done = true;
    });
  for (let step = 0; step < 200 && !done; step++) {
    await turn();
    await clock.advance(0.05);
  }
  await both;
  expect(sentAt).toHaveLength(34);
  for (const start of sentAt)
    expect(sentAt.filter((at) => at >= start && at < start + 1).length).toBeLessThanOrEqual(10);
  expect(sentAt.at(-1)).toBeLessThan(5);
});

test("a group larger than a second's allowance goes out, and the pace makes up for it", () => {
  const clock = new VirtualClock();
  const pace = new Pace(clock, 10);
  expect(pace.wait(30)).toBe(0);
  pace.spend(30);
  expect(pace.wait(1)).toBeCloseTo(3);
});

test("items in a hurry take the next place in the window, and come back first when they were not sent", async () => {
  const sent: number[] = [];
  let stopped = false;
  const arriving = new Map([
    [2, [100, 101]],
    [5, [102]],
  ]);
  const { unsent } = await sendThroughWindow<number, number>(
    { clock: new VirtualClock() },
    {
      items: numbers(8),
      window: 1,
      groupSize: 1,
      stop: () => stopped,
      ahead() {
        const hurried = arriving.get(sent.length) ?? [];
        arriving.delete(sent.length);
        return hurried;
      },
      async send([item]) {
        sent.push(item!);
        stopped = sent.length === 5;
        return [item!];
      },
      settle: async () => {},
    },
  );
  expect(sent).toEqual([0, 1, 100, 101, 2]);
  expect(unsent).toEqual([102, 3, 4, 5, 6, 7]);
});

test("an even pace lets items out one after the other, and still keeps every second", async () => {
  const clock = new VirtualClock();
  const pace = new Pace(clock, 40, { even: true });
  const sentAt: number[] = [];
  while (sentAt.length < 100) {
    const wait = pace.wait(1);
    expect(wait).toBeLessThan(0.1);
    if (wait > 0) await clock.advance(wait);
    else {
      pace.spend(1);
      sentAt.push(clock.monotonic());
    }
  }
  for (const start of sentAt)
    expect(sentAt.filter((at) => at >= start && at < start + 0.999).length).toBeLessThanOrEqual(40);
  expect(sentAt.at(-1)! - sentAt[0]!).toBeLessThan(2.7);
});

test("a pace that knows a hundred thousand items a second remembers moments, not items", () => {
  const clock = new VirtualClock();
  const pace = new Pace(clock, 100_000, { even: true });
  for (let sent = 0; sent < 5_000; sent++) {
    expect(pace.wait(1)).toBe(0);
    pace.spend(1);
  }
  expect(pace.wait(1)).toBeGreaterThan(0);
});
