import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { VirtualClock } from "../kernel/clock.ts";
import { DiskStore } from "../providers/disk-store.ts";
import { objectStoreConformance } from "../providers/object-store.conformance.ts";
import { type ObjectStore, objectStoreErrors, readAll } from "../providers/object-store.ts";
import { FaultyObjectStore, type StoreKnobs } from "./object-store-faults.ts";

const directory = mkdtempSync(join(tmpdir(), "carillon-test-faults-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

objectStoreConformance("the faulty store without faults", { listsInOrder: true }, async () => {
  const clock = new VirtualClock();
  const store = await DiskStore.open({ directory, bucket: "calm", clock });
  return { store: new FaultyObjectStore(store, { clock, seed: 1 }), close: async () => {} };
});

let store: ObjectStore;
const clock = new VirtualClock();
beforeAll(async () => {
  store = await DiskStore.open({ directory, bucket: "stormy", clock });
});
const faulty = (knobs: StoreKnobs, seed = 1) => new FaultyObjectStore(store, { clock, seed, knobs });
const plain = { contentType: "text/plain" };
const content = Buffer.from("content");

test("an operation fails at its rate with its fault, and without effect", async () => {
  const failing = faulty({
    failures: { put: { rate: 1, fault: "SlowDown" }, delete: { rate: 1, fault: "AccessDenied" } },
  });
  await expect(failing.put("a", content, plain)).rejects.toSatisfy(objectStoreErrors.file_store_unavailable.matches);
  expect(await store.head("a")).toBeUndefined();
  await store.put("a", content, plain);
  await expect(failing.delete("a")).rejects.toSatisfy(objectStoreErrors.file_store_refused.matches);
  expect(await failing.head("a")).toMatchObject({ size: 7 });
  expect(failing.injected).toBe(2);
});

test("the same seed gives the same faults, another seed others", async () => {
  const outcomes = async (seed: number) => {
    const shaky = faulty({ failures: { head: { rate: 0.5, fault: "Timeout" } } }, seed);
    const seen: string[] = [];
    for (let index = 0; index < 40; index++)
      seen.push(
        await shaky.head("nothing").then(
          () => "ok",
          () => "fault",
        ),
      );
    return seen.join(" ");
  };
  expect(await outcomes(7)).toBe(await outcomes(7));
  expect(await outcomes(7)).not.toBe(await outcomes(8));
});

test("a truncated put keeps half and says nothing; a lost reply keeps all and fails", async () => {
  await faulty({ truncated: 1 }).put("half", content, plain);
  expect((await readAll(await store.get("half"))).toString()).toBe("con");
  await expect(faulty({ replyLost: 1 }).put("lost", content, plain)).rejects.toSatisfy(
    objectStoreErrors.file_store_unavailable.matches,
  );
  expect((await readAll(await store.get("lost"))).toString()).toBe("content");
});

test("latency passes on the clock", async () => {
  const slow = faulty({ latency: { min: 2, max: 2 } });
  let done = false;
  const heading = slow.head("nothing").then(() => {
    done = true;
  });
  await clock.advance(1.9);
  expect(done).toBe(false);
  await clock.advance(0.2);
  await heading;
  expect(done).toBe(true);
});

test("without credentials nothing works until the outage is over", async () => {
  const from = clock.now() + 10;
  const dark = faulty({ credentialOutage: { from, until: from + 60 } });
  await dark.put("before", content, plain);
  await clock.advance(10);
  await expect(dark.get("before")).rejects.toSatisfy(objectStoreErrors.file_store_unavailable.matches);
  await clock.advance(60);
  expect((await readAll(await dark.get("before"))).toString()).toBe("content");
});

test("a fresh object cannot be seen for a while", async () => {
  const late = faulty({ hiddenWhileFresh: 5 });
  await late.put("fresh", content, plain);
  expect(await late.head("fresh")).toBeUndefined();
  await expect(late.get("fresh")).rejects.toSatisfy(objectStoreErrors.object_not_found.matches);
  const listed = async () => {
    const found: string[] = [];
    for await (const { key } of late.list("fresh")) found.push(key);
    return found;
  };
  expect(await listed()).toEqual([]);
  await clock.advance(5);
  expect(await late.head("fresh")).toMatchObject({ size: 7 });
  expect(await listed()).toEqual(["fresh"]);
});
