import { mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { afterAll, describe, expect, test } from "vitest";
import { VirtualClock } from "../kernel/clock.ts";
import { DiskStore } from "./disk-store.ts";
import { objectStoreConformance } from "./object-store.conformance.ts";

const folders: string[] = [];
const newFolder = () => {
  const folder = mkdtempSync(join(tmpdir(), "carillon-test-objects-"));
  folders.push(folder);
  return folder;
};
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

objectStoreConformance("the folder store", { listsInOrder: true }, async () => {
  const store = await DiskStore.open({ directory: newFolder(), bucket: "test-bucket", clock: new VirtualClock() });
  return { store, close: async () => {} };
});

describe("the folder store on its disk", () => {
  test("leaves no folder and no file behind once everything is deleted", async () => {
    const directory = newFolder();
    const store = await DiskStore.open({ directory, bucket: "tidy", clock: new VirtualClock() });
    await store.put("a/b/c/d", Buffer.from("x"), { contentType: "text/plain" });
    await store.delete("a/b/c/d");
    expect(readdirSync(join(directory, "tidy"))).toEqual(["~incoming"]);
    expect(readdirSync(join(directory, "tidy", "~incoming"))).toEqual([]);
  });

  test("shows an object only when all of it is there", async () => {
    const store = await DiskStore.open({ directory: newFolder(), bucket: "whole", clock: new VirtualClock() });
    const source = new Readable({ read() {} });
    const putting = store.put("slow", source, { contentType: "text/plain" });
    source.push(Buffer.alloc(100_000));
    expect(await store.head("slow")).toBeUndefined();
    source.push(null);
    await putting;
    expect(await store.head("slow")).toMatchObject({ size: 100_000 });
  });

  test("removes what a dead process left half written, once it is a day old", async () => {
    const directory = newFolder();
    const clock = new VirtualClock();
    await DiskStore.open({ directory, bucket: "stale", clock });
    const incoming = join(directory, "stale", "~incoming");
    writeFileSync(join(incoming, "old"), "x");
    utimesSync(join(incoming, "old"), clock.now() - 90_000, clock.now() - 90_000);
    writeFileSync(join(incoming, "young"), "x");
    utimesSync(join(incoming, "young"), clock.now() - 3600, clock.now() - 3600);
    await DiskStore.open({ directory, bucket: "stale", clock });
    expect(readdirSync(incoming)).toEqual(["young"]);
  });

  test("puts and deletes of neighbours at the same time do not disturb each other", async () => {
    const store = await DiskStore.open({ directory: newFolder(), bucket: "busy", clock: new VirtualClock() });
    await Promise.all(
      Array.from({ length: 60 }, async (_, index) => {
        await store.put(`deep/folder/${index}`, Buffer.from("x"), { contentType: "text/plain" });
        if (index % 3 > 0) await store.delete(`deep/folder/${index}`);
      }),
    );
    let left = 0;
    for await (const _ of store.list("deep/")) left += 1;
    expect(left).toBe(20);
  });
});
