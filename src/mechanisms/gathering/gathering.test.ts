import fc from "fast-check";
import { expect, test, vi } from "vitest";
import { systemClock } from "../../kernel/clock.ts";
import { Gathering } from "./index.ts";

/** Work that ends when the test says so. */
function workshop(most = 500) {
  const calls: { readonly group: readonly number[]; end(): void; fail(error: Error): void }[] = [];
  let began: () => void = () => {};
  const gathering = new Gathering<number, string>({
    most,
    work: (group) =>
      new Promise((resolve, reject) => {
        calls.push({ group: [...group], end: () => resolve(`done with ${group.length}`), fail: reject });
        began();
      }),
  });
  /** Waits until so many calls were made. */
  const call = async (number: number) => {
    while (calls.length < number) await new Promise<void>((resolve) => (began = resolve));
    return calls[number - 1]!;
  };
  return { gathering, calls, call };
}

test("what comes in one turn is one group, and what comes during its work is the next", async () => {
  const { gathering, calls, call } = workshop();
  const first = [gathering.join(1), gathering.join(2), gathering.join(3)];
  const one = await call(1);
  const second = [gathering.join(4), gathering.join(5)];
  expect(calls.map(({ group }) => group)).toEqual([[1, 2, 3]]);
  one.end();
  expect(await Promise.all(first)).toEqual(["done with 3", "done with 3", "done with 3"]);
  (await call(2)).end();
  expect(await Promise.all(second)).toEqual(["done with 2", "done with 2"]);
  expect(calls.map(({ group }) => group)).toEqual([
    [1, 2, 3],
    [4, 5],
  ]);
  void gathering.join(6);
  expect((await call(3)).group).toEqual([6]);
});

test("a group that fails fails for all who joined it, and the next group goes on", async () => {
  const { gathering, call } = workshop(2);
  const answers = [1, 2, 3].map((item) => gathering.join(item));
  const settled = Promise.allSettled(answers);
  (await call(1)).fail(new Error("away"));
  (await call(2)).end();
  expect((await settled).map(({ status }) => status)).toEqual(["rejected", "rejected", "fulfilled"]);
});

test("work that throws before it begins fails its group and leaves the gathering usable", async () => {
  let broken = true;
  const gathering = new Gathering<number, number>({
    most: 10,
    work(group) {
      if (broken) throw new Error("not today");
      return Promise.resolve(group.length);
    },
  });
  await expect(gathering.join(1)).rejects.toThrow("not today");
  broken = false;
  expect(await gathering.join(2)).toBe(1);
});

test("every item is worked on once, in order, one call at a time, in groups no larger than allowed", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 20 }),
      fc.integer({ min: 1, max: 5 }),
      async (bursts, most) => {
        const seen: number[] = [];
        let under = 0;
        const gathering = new Gathering<number>({
          most,
          async work(group) {
            expect([++under, group.length <= most]).toEqual([1, true]);
            seen.push(...group);
            await new Promise(setImmediate);
            under -= 1;
          },
        });
        const joined: Promise<void>[] = [];
        for (const burst of bursts) {
          for (let each = 0; each < burst; each++) joined.push(gathering.join(joined.length));
          await new Promise(setImmediate);
        }
        await Promise.all(joined);
        expect(seen).toEqual(joined.map((_, item) => item));
      },
    ),
  );
});

test("a crowd that comes two by two, turn after turn, shares a few groups", async () => {
  const groups: number[] = [];
  const gathering = new Gathering<number>({ most: 500, work: async ({ length }) => void groups.push(length) });
  const joined: Promise<void>[] = [];
  for (let turn = 0; turn < 200; turn++) {
    joined.push(gathering.join(turn), gathering.join(turn));
    await new Promise(setImmediate);
  }
  await Promise.all(joined);
  expect(groups[0]).toBe(2);
  expect(groups.length).toBeLessThan(100);
});

test("a crowd that comes back as it was is waited for once in a while, and nobody beyond it", async () => {
  const looks = vi.spyOn(systemClock, "sleep");
  const groups: number[] = [];
  const gathering = new Gathering<number>({
    most: 500,
    returning: true,
    work: async ({ length }) => void groups.push(length),
  });
  const member = async () => {
    for (let turn = 0; turn < 90; turn++) {
      await gathering.join(turn);
      await new Promise(setImmediate);
    }
  };
  try {
    await Promise.all(Array.from({ length: 40 }, member));
    expect(groups).toEqual(Array.from({ length: 90 }, () => 40));
    expect(looks.mock.calls.length).toBeLessThan(30);
  } finally {
    looks.mockRestore();
  }
});

test("whoever comes alone, again and again, waits for nobody", async () => {
  const groups: number[] = [];
  const gathering = new Gathering<number>({ most: 500, work: async ({ length }) => void groups.push(length) });
  for (let turn = 1; turn <= 20; turn++) {
    const joined = gathering.join(turn);
    await new Promise(setImmediate);
    await new Promise(setImmediate);
    expect(groups).toHaveLength(turn);
    await joined;
  }
});

test("a group has room for at least one", () => {
  expect(() => new Gathering({ most: 0, work: async () => {} })).toThrow("at least one");
});
