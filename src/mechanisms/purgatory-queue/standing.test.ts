import { expect, test } from "vitest";
import { Standing } from "./index.ts";

test("the first items are a head in whatever order they are named, and nothing else is", () => {
  const standing = new Standing(["a", "b", "c"]);
  standing.join(["d"]);
  expect(standing.lastOfHead(["b", "a"])).toBe("b");
  expect(standing.lastOfHead(["a", "c"])).toBeUndefined();
  expect(standing.lastOfHead(["d"])).toBeUndefined();
  expect(standing.lastOfHead([])).toBeUndefined();
});

test("what leaves from the middle lets the others move up", () => {
  const standing = new Standing(["a", "b", "c", "d"]);
  standing.leave(["b"]);
  expect(standing.lastOfHead(["a", "c"])).toBe("c");
  standing.leave(["a", "c"]);
  expect(standing.lastOfHead(["d"])).toBe("d");
});
