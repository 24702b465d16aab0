import { basename, dirname, join, posix, relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { beforeAll, test } from "vitest";
import { declaredScripts, type Script } from "../../src/kernel/redis/script.ts";
import { expectNone, filesIn, isTest, read, root } from "./repository.ts";

const luaFiles = filesIn("src").filter((file) => file.endsWith(".lua"));
const fragments = new Set(
  luaFiles.flatMap((file) =>
    [...read(file).matchAll(/^-- include: (\S+)$/gm)].map(([, name]) => posix.join(posix.dirname(file), name!)),
  ),
);
let scripts: readonly { script: Script; file: string }[] = [];

beforeAll(async () => {
  const wrappers = filesIn("src").filter(
    (file) =>
      file.endsWith(".ts") && !isTest(file) && /\bdefineScript\(/.test(read(file)) && !file.endsWith("/script.ts"),
  );
  await Promise.all(wrappers.map((file) => import(pathToFileURL(join(root, file)).href)));
  // Tests that ran before in the same process may have declared scripts of their own.
  scripts = declaredScripts()
    .map((script) => ({ script, file: relative(root, fileURLToPath(script.file)) }))
    .filter(({ file }) => file.startsWith("src/"));
});

/** The comment at the top of a Lua file, as far as it describes the call. */
function headOf(file: string) {
  const head = {
    name: "",
    promise: false,
    reply: false,
    crash: false,
    KEYS: [] as string[],
    ARGV: [] as string[],
    faults: [] as string[],
  };
  let section: "KEYS" | "ARGV" | undefined;
  for (const [index, line] of read(file).split("\n").entries()) {
    if (!line.startsWith("--") || line.startsWith("-- include:")) break;
    if (index === 0) head.name = /^-- ([a-z0-9_]+): \S/.exec(line)?.[1] ?? "";
    const opened = /^-- (Promise|KEYS|ARGV|Reply|Crash)\b/.exec(line)?.[1];
    if (opened) section = opened === "KEYS" || opened === "ARGV" ? opened : undefined;
    if (opened === "Promise") head.promise = true;
    if (opened === "Reply") head.reply = true;
    if (opened === "Crash") head.crash = true;
    const position = /^--(?: (?:KEYS|ARGV))?\s+(\d+) +((?:\.\.\.)?[a-z][a-z0-9_]*)(?=\s|$)/.exec(line);
    if (!section || !position) continue;
    head[section].push(position[2]!);
    if (Number(position[1]) !== head[section].length)
      head.faults.push(`${section} ${position[1]} ${position[2]} should be number ${head[section].length}`);
  }
  return head;
}

test("every Lua file has a wrapper that loads it, or is included by one that has", () => {
  const wrapped = new Set(scripts.map(({ file }) => file));
  const orphans = luaFiles.filter((file) => !wrapped.has(file) && !fragments.has(file));
  expectNone("Declare these with defineScript, include them, or delete them:", orphans);
});

test("the head of every script names the keys and arguments of its wrapper, in order", () => {
  const faults = scripts.flatMap(({ script, file }) => {
    const head = headOf(file);
    const compare = (what: "KEYS" | "ARGV", wrapper: readonly string[]) =>
      head[what].join(" ") === wrapper.join(" ")
        ? []
        : [`${file}: head says ${what} [${head[what].join(", ")}], the wrapper [${wrapper.join(", ")}]`];
    return [
      ...head.faults.map((fault) => `${file}: ${fault}`),
      ...compare("KEYS", script.keys),
      ...compare("ARGV", script.args),
    ];
  });
  expectNone("Make head and wrapper say the same:", faults);
});

test("a script is named as its file, in head and wrapper", () => {
  const faults = scripts.flatMap(({ script, file }) => {
    const stem = basename(file, ".lua");
    const last = script.name.slice(script.name.lastIndexOf(".") + 1);
    const head = headOf(file).name;
    return [
      ...(last === stem ? [] : [`${file}: the wrapper is named ${script.name}`]),
      ...(head === stem ? [] : [`${file}: its first line must begin with "-- ${stem}: "`]),
      ...(/^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+$/.test(script.name)
        ? []
        : [`${file}: ${script.name} is not family.transition`]),
    ];
  });
  expectNone("The last part of a script's name, its file's name and its head's first word are the same:", faults);
});

test("every script's head tells its promise, its reply and what a crash leaves", () => {
  const faults = scripts.flatMap(({ file }) => {
    const head = headOf(file);
    const missing = (["promise", "reply", "crash"] as const).filter((part) => !head[part]);
    return missing.length === 0 ? [] : [`${file}: no line for ${missing.join(", ")}`];
  });
  expectNone('Add lines "-- Promise: …", "-- Reply  …", "-- Crash  …":', faults);
});

test("positions get names in the locals below the head and nowhere else", () => {
  const faults = luaFiles.flatMap((file) => {
    const lines = read(file).split("\n");
    let at = lines.findIndex((line) => !line.startsWith("--"));
    // The locals: everything up to the first empty line, as long as it declares or continues a declaration.
    if (!fragments.has(file)) while (/^(local (?!function)|\s+\S|[)}]|-- )/.test(lines[at] ?? "")) at++;
    return lines
      .slice(at)
      .flatMap((line, index) =>
        /\b(KEYS|ARGV)\s*\[/.test(line.replace(/--.*$/, "")) ? [`${file}:${at + index + 1}`] : [],
      );
  });
  expectNone(
    "Give every position a name in the locals directly below the head; for a variadic tail: local items = { unpack(ARGV, 2) }:",
    faults,
  );
});

test("scripts take the time as an argument and expire keys by relative times", () => {
  const faults = luaFiles.flatMap((file) =>
    read(file)
      .split("\n")
      .flatMap((line, index) =>
        /['"](TIME|EXPIREAT|PEXPIREAT|EXAT|PXAT)['"]/i.test(line.replace(/--.*$/, "")) ? [`${file}:${index + 1}`] : [],
      ),
  );
  expectNone("Pass now as an argument, and use PX or PEXPIRE:", faults);
});

test("scripts stand in a folder named scripts beside their wrapper", () => {
  const faults = luaFiles.filter((file) => basename(dirname(file)) !== "scripts");
  expectNone("Move these into scripts/:", faults);
});
