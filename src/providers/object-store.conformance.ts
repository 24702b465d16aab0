import { Readable } from "node:stream";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ObjectStore, objectStoreErrors, readAll } from "./object-store.ts";

export interface OpenedStore {
  readonly store: ObjectStore;
  close(): Promise<void>;
}

/** What every object store must do. Each implementation runs this suite against a real back end. */
export function objectStoreConformance(
  name: string,
  back: { readonly listsInOrder: boolean },
  open: () => Promise<OpenedStore>,
): void {
  describe(`${name} as an object store`, () => {
    let opened: OpenedStore;
    let store: ObjectStore;
    const contentType = "text/plain";
    const read = async (key: string, range?: { start: number; end: number }) =>
      (await readAll(await store.get(key, range))).toString();
    const keysBelow = async (prefix: string) => {
      const keys: string[] = [];
      for await (const { key } of store.list(prefix)) keys.push(key);
      return back.listsInOrder ? keys : keys.sort();
    };

    beforeAll(async () => {
      opened = await open();
      store = opened.store;
    });
    afterAll(() => opened?.close());

    test(`${name} gives back what was put, with its size and content type`, async () => {
      await store.put("facts/hello", Buffer.from("hello"), { contentType: "text/plain" });
      expect(await read("facts/hello")).toBe("hello");
      expect(await store.head("facts/hello")).toEqual({ size: 5, contentType: "text/plain" });
    });

    test(`${name} stores a stream of unknown length, also an empty one`, async () => {
      const megabyte = Buffer.alloc(1_048_576, 7);
      await store.put("streams/large", Readable.from([megabyte, megabyte, Buffer.from("end")]), { contentType });
      expect(await store.head("streams/large")).toMatchObject({ size: 2 * 1_048_576 + 3 });
      const back = await readAll(await store.get("streams/large"));
      expect(back.equals(Buffer.concat([megabyte, megabyte, Buffer.from("end")]))).toBe(true);
      await store.put("streams/empty", Readable.from([]), { contentType });
      expect(await store.head("streams/empty")).toMatchObject({ size: 0 });
    });

    test(`${name} stores nothing when the stream fails half way`, async () => {
      const failing = Readable.from(
        (async function* () {
          yield Buffer.from("half");
          throw new Error("the source broke");
        })(),
      );
      await expect(store.put("streams/broken", failing, { contentType })).rejects.toThrow("the source broke");
      expect(await store.head("streams/broken")).toBeUndefined();
    });

    test(`${name} reads ranges, inclusive on both ends and cut at the object's end`, async () => {
      await store.put("ranges/digits", Buffer.from("0123456789"), { contentType });
      expect(await read("ranges/digits", { start: 0, end: 1 })).toBe("01");
      expect(await read("ranges/digits", { start: 3, end: 6 })).toBe("3456");
      expect(await read("ranges/digits", { start: 8, end: 100 })).toBe("89");
      await expect(store.get("ranges/digits", { start: 10, end: 20 })).rejects.toSatisfy(
        objectStoreErrors.file_store_refused.matches,
      );
    });

    test(`${name} says object_not_found for get, undefined for head, and done for delete of what is missing`, async () => {
      await expect(store.get("missing/object")).rejects.toSatisfy(objectStoreErrors.object_not_found.matches);
      expect(await store.head("missing/object")).toBeUndefined();
      await store.delete("missing/object");
    });

    test(`${name} deletes an object and only that one`, async () => {
      await store.put("deletes/a", Buffer.from("a"), { contentType });
      await store.put("deletes/ab", Buffer.from("ab"), { contentType });
      await store.delete("deletes/a");
      expect(await store.head("deletes/a")).toBeUndefined();
      expect(await read("deletes/ab")).toBe("ab");
    });

    test(`${name} replaces an object that is put again`, async () => {
      await store.put("replace/me", Buffer.from("a longer first version"), { contentType });
      await store.put("replace/me", Buffer.from("second"), { contentType: "text/html" });
      expect(await read("replace/me")).toBe("second");
      expect(await store.head("replace/me")).toEqual({ size: 6, contentType: "text/html" });
    });

    test(`${name} lists the keys below a prefix in order, a key beside keys below it included`, async () => {
      const keys = ["list/a", "list/a-b", "list/a.b", "list/a/b", "list/a/b/c", "list/a0", "list/b", "listless"];
      for (const key of [...keys].reverse()) await store.put(key, Buffer.from(key), { contentType });
      expect(await keysBelow("list/")).toEqual(keys.slice(0, 7).sort());
      expect(await keysBelow("list/a/")).toEqual(["list/a/b", "list/a/b/c"]);
      expect(await keysBelow("list/a/b")).toEqual(["list/a/b", "list/a/b/c"]);
      expect(await keysBelow("list/nothing/")).toEqual([]);
    });

    test(`${name} refuses keys that could leave its bucket`, async () => {
      for (const key of ["", "/a", "a/", "a//b", "../a", "a/../b", "a/.", "a.", "a b", "a~", "a\\b", "a\u0000"]) {
        const refused = objectStoreErrors.bad_object_key.matches;
        await expect(store.put(key, Buffer.from("x"), { contentType })).rejects.toSatisfy(refused);
        await expect(store.get(key)).rejects.toSatisfy(refused);
        await expect(store.head(key)).rejects.toSatisfy(refused);
        await expect(store.delete(key)).rejects.toSatisfy(refused);
      }
    });

    test(`${name} agrees with a plain map after any sequence of puts and deletes`, async () => {
      const key = fc.constantFrom("m/a", "m/a/b", "m/a.b", "m/b", "m/b/c/d");
      const step = fc.oneof(
        fc.record({ put: key, bytes: fc.uint8Array({ maxLength: 64 }) }),
        fc.record({ delete: key }),
      );
      await fc.assert(
        fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
          for (const left of await keysBelow("m/")) await store.delete(left);
          const model = new Map<string, Buffer>();
          for (const one of steps)
            if ("put" in one) {
              model.set(one.put, Buffer.from(one.bytes));
              await store.put(one.put, Buffer.from(one.bytes), { contentType });
            } else {
              model.delete(one.delete);
              await store.delete(one.delete);
            }
          expect(await keysBelow("m/")).toEqual([...model.keys()].sort());
          for (const [stored, bytes] of model)
            expect((await readAll(await store.get(stored))).equals(bytes)).toBe(true);
        }),
        { numRuns: 12 },
      );
    });
  });
}
