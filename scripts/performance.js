// node scripts/performance.js: writes the tables of docs/performance.md from bench/results/*.json. --check only compares.
import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { refresh } from "./sections.js";
import { explain, root } from "./steps.js";

export const PAGE = "docs/performance.md";
const RESULTS = "bench/results";

/** 12274.6 as 12,275; small numbers keep three digits. */
function shown(value) {
  if (value === null || value === undefined) return "";
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return value.toLocaleString("en-US", { maximumFractionDigits: digits });
}

function table(rows) {
  const columns = [
    ["metric", ":--", (row) => row.metric],
    ["unit", ":--", (row) => row.unit],
    ["Carillon", "--:", (row) => shown(row.ours)],
    ["limit", "--:", (row) => shown(row.limit)],
    ["peer", "--:", (row) => shown(row.peer)],
    ["ratio", "--:", (row) => (typeof row.ratio === "number" ? `${row.ratio.toFixed(2)}×` : "")],
    ["the peer is", ":--", (row) => row.peerName ?? ""],
  ].filter(([, , cell]) => rows.some((row) => cell(row) !== ""));
  const line = (cells) => `| ${cells.join(" | ")} |`;
  return [
    line(columns.map(([title]) => title)),
    line(columns.map(([, form]) => form)),
    ...rows.map((row) => line(columns.map(([, , cell]) => String(cell(row)).replaceAll("|", "\\|")))),
  ].join("\n");
}

function section(result) {
  const { cpu, cores, memory, node } = result.machine;
  const peers = Object.entries(result.peers ?? {}).map(([name, version]) => `${name} ${version}`);
  const versions = [`Node ${node.replace(/^v/, "")}`, ...(result.redis ? [`Redis ${result.redis}`] : []), ...peers];
  return [
    `### ${result.name}`,
    `\`npm run bench -- ${result.name}\` on ${cores} cores of ${cpu} with ${memory}; ${versions.join(", ")}.`,
    table(result.rows),
    ...(result.notes?.length ? [result.notes.map((note) => `- ${note}`).join("\n")] : []),
  ].join("\n\n");
}

/** All tables, one section per result file in the order of their names. */
export function performanceTables() {
  const files = readdirSync(join(root, RESULTS)).filter((name) => name.endsWith(".json"));
  return files
    .sort()
    .map((name) =>
      section({ name: basename(name, ".json"), ...JSON.parse(readFileSync(join(root, RESULTS, name), "utf8")) }),
    )
    .join("\n\n");
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  try {
    const options = { checkOnly: process.argv.includes("--check"), command: "node scripts/performance.js" };
    refresh([PAGE], () => performanceTables(), options);
  } catch (error) {
    process.exitCode = explain(error);
  }
