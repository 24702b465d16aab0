import { basename } from "node:path";
import { test } from "vitest";
import { roomOf, rooms } from "./floor-plan.ts";
import { expectNone, filesIn, importsOf, isTest, read } from "./repository.ts";

const DOORS = ["index", "keys", "service", "jobs", "routes", "stats", "tables", "invariants", "errors", "settings"];
const NOTHING_NAMES = /^(utils?|helpers?|common|misc|types?|shared|lib|constants|interfaces)$/;
const LONGEST = 450;
/** Nobody reads these from top to bottom. */
const GENERATED = new Set(["src/client/schema.ts"]);

const sources = filesIn("src", "test", "bench", "scripts", "dashboard").filter((file) => !file.includes("/results/"));

test("only the doors of a room are used from outside", () => {
  const doors = new Set(rooms().flatMap((room) => DOORS.map((door) => `${room}/${door}.ts`)));
  const faults = filesIn("src")
    .filter((file) => /\.(ts|tsx|mjs)$/.test(file) && !isTest(file))
    .flatMap((file) =>
      importsOf(file).flatMap(({ target }) => {
        const room = target === undefined ? undefined : roomOf(target);
        if (room === undefined || room === roomOf(file) || doors.has(target!)) return [];
        return [`${file} imports ${target}`];
      }),
    );
  expectNone(
    `What outsiders need of a room goes through its doors (${DOORS.join(", ")}), most often service.ts:`,
    faults,
  );
});

test("a room holds its doors, furniture named for one thing, its scripts and its tests", () => {
  const faults = rooms().flatMap((room) =>
    filesIn(room).filter((file) => {
      const inside = file.slice(room.length + 1);
      return !/^([a-z][a-z0-9-]*(\.(test|conformance|fixture))?\.tsx?|scripts\/[a-z][a-z0-9_]*(\.fragment)?\.lua)$/.test(
        inside,
      );
    }),
  );
  expectNone("A room is one folder of files in kebab-case, with Lua files in scripts/ in snake_case:", faults);
});

test("every room has a plan, and a test of what it does", () => {
  const faults = rooms().flatMap((room) => {
    const files = filesIn(room);
    return [
      ...(files.includes(`${room}/index.ts`) ? [] : [`${room}: no index.ts`]),
      ...(files.some(isTest) ? [] : [`${room}: no *.test.ts`]),
    ];
  });
  expectNone("Add what is missing:", faults);
});

test("a room's folder has the name of its domain", () => {
  const faults = rooms().flatMap((room) => {
    const text = filesIn(room).includes(`${room}/index.ts`) ? read(`${room}/index.ts`) : "";
    const name = /\bname:\s*"([^"]+)"/.exec(text)?.[1];
    return name === undefined || name === basename(room) ? [] : [`${room} is the domain ${name}`];
  });
  expectNone("Rename the folder or the domain:", faults);
});

test("no file or folder is named for nothing in particular", () => {
  const faults = sources.filter((file) =>
    file.split("/").some((part) => NOTHING_NAMES.test(part.replace(/\..*$/, ""))),
  );
  expectNone("Name these for the one thing they are about:", faults);
});

test(`no file is longer than ${LONGEST} lines`, () => {
  const faults = sources
    .filter((file) => /\.(ts|tsx|mjs|js|lua)$/.test(file) && !GENERATED.has(file))
    .map((file) => ({ file, lines: read(file).split("\n").length - 1 }))
    .filter(({ lines }) => lines > LONGEST)
    .map(({ file, lines }) => `${file}: ${lines} lines`);
  expectNone("Split these, one noun a file:", faults);
});
