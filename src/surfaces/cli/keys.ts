import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { Command } from "commander";
import type { KernelContext } from "../../kernel/context.ts";
import {
  type AuditResult,
  audit,
  type Catalogue,
  type Explanation,
  explain,
  FINDING_KINDS,
  type Invariant,
  keysJson,
  keysReference,
  ttlText,
} from "../../kernel/keyspace/index.ts";
import { columns as inColumns } from "./columns.ts";
import { progressBar, type Terminal } from "./progress-bar.ts";

/** What the commands work on. `ctx` is only touched by commands that look at the server, so it may be opened late. */
export interface OpenKeyspace {
  readonly catalogue: Catalogue;
  readonly ctx: Pick<KernelContext, "redis" | "cacheRedis" | "sql" | "clock" | "config">;
  readonly invariants: readonly Invariant[];
  close(): Promise<void>;
}

export interface KeysIo {
  /** Prints one or more lines, with a line end added. */
  print(text: string): void;
  /** Called with the status that the process should end with; default: sets `process.exitCode`. */
  exit?(status: number): void;
  /** Where progress goes; default: stderr. */
  readonly terminal?: Terminal;
}

const REFERENCE = "docs/keys.md";

/** `carillon keys …`. `open` is told whether the command needs a server. */
export function keysCommand(open: (needs: { readonly server: boolean }) => Promise<OpenKeyspace>, io: KeysIo): Command {
  const exit = io.exit ?? setExitCode;
  const using = async (server: boolean, work: (keyspace: OpenKeyspace) => Promise<void> | void) => {
    const keyspace = await open({ server });
    try {
      await work(keyspace);
    } finally {
      await keyspace.close();
    }
  };
  const keys = new Command("keys").description("what every Redis key means, and whether they are all in order");

  keys
    .command("list")
    .description("print every declared key pattern and channel")
    .option("--json", "as JSON: pattern, kind, type, family, domain, ttl, origin, doc")
    .addHelpText("after", LIST_HELP)
    .action((options: { json?: boolean }) =>
      using(false, ({ catalogue }) =>
        io.print(options.json ? JSON.stringify(keysJson(catalogue), null, 2) : listText(catalogue)),
      ),
    );

  keys
    .command("explain")
    .argument("<name>", "a key, a channel or a pattern")
    .description("say what a key or channel is, and what it holds now")
    .option("--json", "as JSON")
    .addHelpText("after", EXPLAIN_HELP)
    .action((name: string, options: { json?: boolean }) =>
      using(true, async ({ catalogue, ctx }) => {
        const found = await explain(catalogue, name, ctx);
        io.print(options.json ? JSON.stringify(found, null, 2) : explanationText(found));
        if (!found.known) exit(1);
      }),
    );

  keys
    .command("audit")
    .description("compare the live Redis with the declarations; ends with status 1 when anything is wrong")
    .option("--json", "as JSON")
    .option("--deep", "read up to 5,000 elements of each collection instead of 32, and weigh every element")
    .addHelpText("after", AUDIT_HELP)
    .action((options: { json?: boolean; deep?: boolean }) =>
      using(true, async ({ catalogue, ctx, invariants }) => {
        const bar = progressBar(io.terminal ?? process.stderr, ctx.clock);
        const auditing = audit(ctx, catalogue, { invariants, deep: options.deep, onProgress: bar.show });
        const result = await auditing.finally(bar.end);
        io.print(options.json ? JSON.stringify(result, null, 2) : auditText(result));
        if (!result.ok) exit(1);
      }),
    );

  keys
    .command("docs")
    .description(`write ${REFERENCE}, the reference of all keys`)
    .option("--check", "write nothing; end with status 1 when the file is not what would be written")
    .option("--file <path>", "another file", REFERENCE)
    .addHelpText("after", DOCS_HELP)
    .action((options: { check?: boolean; file: string }) =>
      using(false, ({ catalogue }) => {
        const wanted = keysReference(catalogue);
        if (!options.check) {
          mkdirSync(dirname(options.file), { recursive: true });
          writeFileSync(options.file, wanted);
          io.print(`${options.file}: ${catalogue.entries.length} patterns`);
        } else if (readOrNothing(options.file) === wanted) io.print(`${options.file} is up to date`);
        else {
          io.print(`${options.file} is out of date: run \`carillon keys docs\` and commit it`);
          exit(1);
        }
      }),
    );
  return keys;
}

const LIST_HELP = `
Examples:
  carillon keys list                                   every pattern with its type, expiry and meaning
  carillon keys list | grep '^jobs:'                   those of the job queue
  carillon keys list --json | jq -r '.[].pattern'      for scripts

{name} in a pattern stands for a part of the key's name: users:{sub}:lock means users:abc:lock, users:def:lock, ...`;

const EXPLAIN_HELP = `
Examples:
  carillon keys explain jobs:hot                        what the key is for, its length, its first and last entries
  carillon keys explain 'updates:{repo}:lock'           a pattern, in quotes because of the braces
  carillon keys explain '{jobs}:jobs:hot'               a name as a Redis Cluster has it

Values of secret patterns are never read. A name that nothing fits ends with status 1 and the nearest patterns.`;

const AUDIT_HELP = `
Examples:
  carillon keys audit                                   findings, then what each pattern weighs
  carillon keys audit --deep                            the same with far more of each value read
  carillon keys audit --json | jq '.patterns[:5]'       the five largest patterns
  carillon keys audit --json | jq '.findings'           for a monitor

It walks with SCAN, writes nothing, and may run beside production traffic.
Findings: ${Object.keys(FINDING_KINDS).join(", ")}.`;

const DOCS_HELP = `
Examples:
  carillon keys docs                                    after a change of any keys.ts
  carillon keys docs --check                            in continuous integration`;

function setExitCode(status: number): void {
  process.exitCode = status;
}

function readOrNothing(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

function listText(catalogue: Catalogue): string {
  const rows = catalogue.entries.map((entry) => [
    entry.pattern,
    entry.type,
    entry.kind === "channel" ? "" : ttlText(entry.ttl),
    entry.doc,
  ]);
  return columns(rows);
}

function explanationText(found: Explanation): string {
  if (!found.known) {
    const near = found.near.map(({ pattern, doc }) => [`  ${pattern}`, doc]);
    return [
      `No declared pattern fits ${found.name}.`,
      ...(near.length > 0 ? ["Near it are:", columns(near)] : []),
    ].join("\n");
  }
  const marks = [found.shared && "shared by all families", found.secret && "secret", found.cache && "a cache"];
  const facts: (readonly [string, string])[] = [
    ["pattern", found.pattern],
    ["meaning", found.doc],
    ["type", found.type],
    ["value", found.shape],
    ...(found.kind === "key" ? [["expires", found.ttl] as const] : []),
    ["family", `${found.family} (domain ${found.domain})`],
    ["origin", found.origin === "carillon" ? "Carillon's own" : "documented"],
    ...marks.flatMap((mark) => (mark ? [["note", mark] as const] : [])),
    ...Object.entries(found.parameters ?? {}).map(([name, value]) => [`{${name}}`, value] as const),
  ];
  const { live } = found;
  if (live && !live.exists) facts.push(["now", "does not exist"]);
  if (live?.exists) {
    const expiry = live.expires_in === null ? "never expires" : `expires in ${live.expires_in.toFixed(1)} s`;
    const length = live.length === null ? "" : `, length ${live.length.toLocaleString("en-US")}`;
    facts.push(["now", `${live.type}${length}, ${size(live.bytes)}, ${expiry}`]);
    if (live.note !== undefined) facts.push(["holds", live.note]);
    else facts.push([live.complete ? "holds" : "holds, in part", shownValue(live.value)]);
  }
  return columns(facts);
}

function shownValue(value: unknown): string {
  if (Buffer.isBuffer(value)) return `${value.length} bytes: ${value.subarray(0, 64).toString("hex")}`;
  const lines = JSON.stringify(
    value,
    (_name, inner: unknown) => (Buffer.isBuffer(inner) ? inner.toString("hex") : inner),
    1,
  );
  return (lines ?? "nothing").replace(/\n\s*/g, " ").slice(0, 2_000);
}

function auditText(result: AuditResult): string {
  const lines = result.patterns.map((usage) => [
    `  ${usage.pattern}`,
    usage.keys.toLocaleString("en-US"),
    size(usage.bytes),
    usage.unread > 0 ? `${usage.unread} too large to read` : "",
  ]);
  const unknown = result.unknown.map((usage) => [
    `  ${usage.prefix}… (unknown)`,
    usage.keys.toLocaleString("en-US"),
    size(usage.bytes),
    "",
  ]);
  const text = [
    `${result.keys.toLocaleString("en-US")} keys, ${size(result.bytes)}, ${result.invariants} invariants, ${result.seconds.toFixed(1)} s`,
    columns([...lines, ...unknown]),
  ].filter(Boolean);
  for (const { kind, pattern, count } of result.counts) {
    const listed = result.findings.filter((finding) => finding.kind === kind && finding.pattern === pattern);
    text.push("", `${kind}${pattern === null ? "" : ` ${pattern}`}: ${count} (${FINDING_KINDS[kind]})`);
    for (const { key, detail } of listed) text.push(`  ${key === null ? detail : `${key}: ${detail}`}`);
    if (count > listed.length) text.push(`  … and ${(count - listed.length).toLocaleString("en-US")} more`);
  }
  text.push("", result.ok ? "Everything is as declared." : `${result.found.toLocaleString("en-US")} findings.`);
  return text.join("\n");
}

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

function size(bytes: number): string {
  const power = Math.min(UNITS.length - 1, Math.floor(Math.log2(Math.max(bytes, 1)) / 10));
  return `${(bytes / 1024 ** power).toFixed(power === 0 ? 0 : 1)} ${UNITS[power]}`;
}

function columns(rows: readonly (readonly string[])[]): string {
  return inColumns(rows).join("\n");
}
