import { Command } from "commander";
import type { ProcessRoles } from "../../domain.ts";
import { issueSignInLink } from "../../infrastructure/access/service.ts";
import { standsIn } from "../../infrastructure/sandbox/service.ts";
import { systemClock } from "../../kernel/clock.ts";
import { refuseWhileFilling } from "../demo/history.ts";
import { type LivingDemo, startDemo } from "../demo/living.ts";
import { dataFolders, openHouseLog } from "../foundation.ts";
import { type House, openHouse } from "../house.ts";
import { loadSettings } from "../settings.ts";
import { columns } from "./columns.ts";
import { CommandFailed } from "./exit.ts";
import type { Io } from "./io.ts";

interface Shape {
  readonly name: string;
  readonly summary: string;
  readonly description: string;
  readonly roles: ProcessRoles;
}

const SHAPES: readonly Shape[] = [
  {
    name: "up",
    summary: "run everything in this process: server, worker and scheduler",
    description: `Runs the HTTP server, a worker and the scheduler in one process. Without REDIS_URL it runs a Redis of its own,
without DATABASE_URL an embedded database, both under the data folder (.carillon), where the next start finds
everything again. Tables are migrated first. Ctrl-C stops cleanly: running jobs end or go back to the queue; a
second Ctrl-C does not wait for them.`,
    roles: { web: true, worker: true },
  },
  {
    name: "serve",
    summary: "run the HTTP server only",
    description: `Runs the HTTP server without a worker. For several machines or processes: give them the same REDIS_URL,
DATABASE_URL and CARILLON_ROOT_SECRET, and run \`carillon work\` somewhere too.`,
    roles: { web: true, worker: false },
  },
  {
    name: "work",
    summary: "run a worker and scheduler only",
    description: `Runs jobs and the schedule without a server. Any number may run; CARILLON_JOB_CONCURRENCY and
CARILLON_JOB_CATEGORIES say what each takes on. A worker that dies loses nothing: others take over its jobs.`,
    roles: { web: false, worker: true },
  },
];

/** One Ctrl-C may come twice, from the terminal and from npm; within this many seconds it is the same one. */
const SAME_KEYSTROKE = 0.5;

export function runCommands(io: Io): Command[] {
  return SHAPES.map((shape) =>
    new Command(shape.name)
      .summary(shape.summary)
      .description(shape.description)
      .action(() => run(shape, io)),
  );
}

async function run(shape: Shape, io: Io): Promise<void> {
  const began = systemClock.monotonic();
  const config = loadSettings(io.environment, io.workingDirectory);
  const log = openHouseLog(config, { terminal: io.terminal });
  const hurry = new AbortController();
  let asked!: (signal: string) => void;
  const stopAsked = new Promise<string>((resolve) => {
    asked = resolve;
  });
  let firstAt: number | undefined;
  const deaf = io.onSignal((signal) => {
    const now = systemClock.monotonic();
    if (firstAt === undefined) asked(signal);
    else if (now - firstAt > SAME_KEYSTROKE) hurry.abort();
    firstAt ??= now;
  });
  try {
    if (shape.roles.worker) refuseWhileFilling({ config });
    const house = await openHouse({ config, roles: shape.roles, log });
    const seconds = (systemClock.monotonic() - began).toFixed(1);
    log.info({ host: house.ctx.hostname, url: house.url, redis: house.redis.version }, `${shape.name} is ready`);
    const link = house.url === undefined ? undefined : await issueSignInLink(house.ctx, { label: shape.name });
    const demo = await demoOf(house);
    for (const line of whereToLook(house, seconds, carillonFrom(io), link?.url, demo?.lines)) io.out(line);
    const reason = await Promise.race([stopAsked, house.ending]);
    const ending = typeof reason === "string" ? undefined : reason;
    io.out(ending ? `Stopping for ${ending.why}.` : "Stopping; once more to stop without waiting.");
    await demo?.stop();
    await house.close({ hurry: hurry.signal });
    io.out("Stopped. Everything is kept for the next start.");
    if (ending && ending.exitCode !== 0) throw new CommandFailed(ending.exitCode);
  } finally {
    deaf();
    log.flush();
  }
}

/** Only a process that does everything has a demo. It is an extra: a house starts without it, should it fail. */
async function demoOf({ ctx, roles }: House): Promise<LivingDemo | undefined> {
  if (!roles.web || !roles.worker) return undefined;
  try {
    return await startDemo(ctx);
  } catch (error) {
    ctx.log.warn({ err: error }, "the demo did not start");
    return undefined;
  }
}

/** How to call the other commands: a clone that was started by npm is not on PATH. */
function carillonFrom({ environment }: Io): string {
  return environment.npm_lifecycle_event === undefined ? "carillon" : "npx carillon";
}

function whereToLook(
  house: House,
  seconds: string,
  carillon: string,
  link: string | undefined,
  demo: readonly string[] = [],
): string[] {
  const { ctx, url } = house;
  const rows: string[][] = [];
  if (url) rows.push(["API", `${url}/api/1`], ["Reference", `${url}/docs`], ["Health", `${url}/readyz`]);
  if (url && standsIn(ctx.config)) rows.push(["Inbox", `${url}/sandbox, what simulated providers were given`]);
  if (house.roles.worker) rows.push(["Jobs", `${ctx.jobs.runners.size} runners; ${carillon} jobs list`]);
  rows.push(["Redis", `${house.redis.version}, ${house.redis.description}`]);
  rows.push(["SQL", house.database.description]);
  rows.push(["Data", dataFolders(ctx.config).root]);
  if (house.migrated.length > 0) rows.push(["Migrated", `${house.migrated.length} steps`]);
  if (url) rows.push(["For programs", `${carillon} admin token --label me`]);
  const welcome = link === undefined ? [] : ["", "Open the dashboard (the link works once):", `  ${link}`, ""];
  return [
    "",
    `Carillon is up as ${ctx.hostname} after ${seconds} s.`,
    ...columns(rows, "  "),
    ...welcome,
    ...(link === undefined ? [] : [`Another link: ${carillon} admin login.`]),
    ...demo,
    "Ctrl-C stops everything cleanly.",
    "",
  ];
}
