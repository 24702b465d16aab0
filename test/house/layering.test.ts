import { test } from "vitest";
import { FLOORS, floorOf, roomOf, rooms, roomsInOrder } from "./floor-plan.ts";
import { expectNone, filesIn, importsOf, isTest } from "./repository.ts";

const arrows = filesIn("src")
  .filter((file) => /\.(ts|tsx|mjs|js)$/.test(file) && !isTest(file))
  .flatMap((file) =>
    importsOf(file).flatMap(({ target, typesOnly }) => (target === undefined ? [] : [{ file, target, typesOnly }])),
  );

test("imports point down the floors of the house", () => {
  const faults = arrows.flatMap(({ file, target }) => {
    const [from, to] = [floorOf(file), floorOf(target)];
    if (from === undefined) return [];
    if (to === undefined) return [`${file} imports ${target}, which is outside src`];
    return FLOORS.indexOf(to) > FLOORS.indexOf(from) ? [`${file} (${from}) imports ${target} (${to})`] : [];
  });
  expectNone(`Imports may only point down: ${FLOORS.join(" <- ")}. Move what is shared to a lower floor:`, faults);
});

test("the client needs nothing but the platform, and the server does not need the client", () => {
  const inside = (file: string) => floorOf(file) === "client";
  const packages = filesIn("src/client")
    .filter((file) => !isTest(file))
    .flatMap((file) =>
      importsOf(file).flatMap(({ specifier, target }) =>
        target === undefined ? [`${file} imports ${specifier}`] : [],
      ),
    );
  const crossing = arrows
    .filter(({ file, target }) => inside(file) !== inside(target))
    .map(({ file, target }) => `${file} imports ${target}`);
  expectNone("The client runs in browsers, without the server and without packages:", [...packages, ...crossing]);
});

test("the pages know nothing of the server but its client, and nobody knows the pages", () => {
  const pages = filesIn("dashboard/src").flatMap((file) =>
    importsOf(file).flatMap(({ specifier, target }) => {
      if (target !== undefined && !target.startsWith("dashboard/")) return [`${file} imports ${target}`];
      return specifier.startsWith("carillon/") && specifier !== "carillon/client"
        ? [`${file} imports ${specifier}`]
        : [];
    }),
  );
  const intruders = arrows.filter(({ target }) => target.startsWith("dashboard/")).map(({ file }) => file);
  expectNone("The pages speak through carillon/client, as any application does:", [...pages, ...intruders]);
});

test("a page uses another page's files through the shared parts only", () => {
  const pageOf = (file: string) => /^dashboard\/src\/pages\/([^/]+)\//.exec(file)?.[1];
  const faults = filesIn("dashboard/src").flatMap((file) =>
    importsOf(file).flatMap(({ target }) => {
      const other = target === undefined ? undefined : pageOf(target);
      const isRouter = file === "dashboard/src/app/router.tsx";
      return other === undefined || other === pageOf(file) || isRouter ? [] : [`${file} imports ${target}`];
    }),
  );
  expectNone("Move what two pages need to dashboard/src/parts or dashboard/src/api:", faults);
});

test("a room uses another room through its service only", () => {
  const faults = arrows.flatMap(({ file, target }) => {
    const [from, to] = [roomOf(file), roomOf(target)];
    if (from === undefined || to === undefined || from === to) return [];
    return target === `${to}/service.ts` ? [] : [`${file} imports ${target}`];
  });
  expectNone("Another room is used through its service.ts: export what is needed from there:", faults);
});

test("a room uses only rooms that stand above it in the floor plan", () => {
  const order = roomsInOrder();
  const faults = arrows.flatMap(({ file, target }) => {
    const [from, to] = [roomOf(file), roomOf(target)];
    if (from === undefined || to === undefined || from === to) return [];
    const [own, other] = [order.indexOf(from), order.indexOf(to)];
    return own >= 0 && other >= 0 && other < own ? [] : [`${file} imports ${target}`];
  });
  expectNone("Change the order in src/domains.ts, or turn the arrow round:", faults);
});

test("every room with a plan stands in the floor plan", () => {
  const order = new Set(roomsInOrder());
  const withPlan = rooms().filter((room) => filesIn(room).includes(`${room}/index.ts`));
  const missing = withPlan.filter((room) => !order.has(room));
  expectNone("Add these rooms to src/domains.ts:", missing);
});

test("relative imports name files that exist, with their ending", () => {
  const known = new Set(filesIn("src"));
  const faults = arrows.flatMap(({ file, target }) => (known.has(target) ? [] : [`${file} imports ${target}`]));
  expectNone("These files are not there:", faults);
});

test("modules do not import each other in a circle", () => {
  const next = new Map<string, string[]>();
  // Imports of types vanish when compiled and cannot make a circle.
  for (const { file, target, typesOnly } of arrows) if (!typesOnly) next.set(file, [...(next.get(file) ?? []), target]);
  const done = new Set<string>();
  const faults: string[] = [];
  const visit = (file: string, path: readonly string[]) => {
    const at = path.indexOf(file);
    if (at >= 0) faults.push([...path.slice(at), file].join(" -> "));
    if (at >= 0 || done.has(file)) return;
    for (const target of next.get(file) ?? []) visit(target, [...path, file]);
    done.add(file);
  };
  for (const file of next.keys()) visit(file, []);
  expectNone("Circles break when the order of loading changes; move what both need into a third file:", faults);
});
