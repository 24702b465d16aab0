import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { type Engine, enginesFor } from "./furnish.ts";
import { median, printTable, type Row, readable, say, temporaryRedis, writeResults } from "./kit.ts";
import type { Wish } from "./links-server.ts";

const BARE = "a bare Fastify route that redirects";
const BY_HAND = "a Fastify route that looks each link up and stores its click";
/** How many people are there at once, with one request each. */
const PEOPLE = 512;
/** The first two rounds of each side only warm it up. */
const WARM_UP = 2;
/** The part of the bare route's rate that ours is to reach. */
const GOAL = 0.6;
const NOTES = [
  "Each side is a process of its own with one thread that serves, over HTTP on the loopback. Ours is the whole server: log, measurements, limits, validation. Every request of ours uses another link and is a click that is kept; each round proves that all were.",
  "A connection each: every click is somebody else's, who comes, clicks and goes. Connections kept open: as from a proxy that keeps its own, so that nearly all that is left of the bare route is reading and writing 400 bytes.",
  "Buffered: the links wait in Redis, and so do their clicks. Stored: the links are in SQL, and a click is answered after its row is committed. PGlite runs inside the server's process, Postgres beside it.",
  "The processor time of the server is given too: it does not depend on what else the machine does.",
  "The limit is the goal: 60 % of the bare route, which asks nobody and keeps nothing. What keeping clicks costs whoever writes it by hand, an INCR, a SELECT, an INSERT and another INCR for each click, shows the other peer, on a Redis and an SQL engine of its own.",
];

type Kind = "buffered" | "stored";
type Coming = "a connection each" | "connections kept open";
const DOORS = ["POST /l/{code}", "POST /api/1/notifications/complete"] as const;
type Door = (typeof DOORS)[number] | "POST /kept/{code}";
const COMINGS: readonly Coming[] = ["a connection each", "connections kept open"];

/** With what ours is to reach. */
interface ClickRow extends Row {
  readonly limit?: number;
}

interface Load {
  readonly rate: number;
  readonly cpu: number;
}

/** `npm run bench -- links [--clicks N] [--rounds N] [--engine PGlite|Postgres] [--kind buffered|stored]`; only a whole run is recorded. */
export async function run(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      clicks: { type: "string", default: "20000" },
      rounds: { type: "string", default: "5" },
      engine: { type: "string" },
      kind: { type: "string" },
    },
  });
  const size = { clicks: Number(values.clicks), rounds: Number(values.rounds) };
  const engines = enginesFor(values.engine);
  const rows: Row[] = [];
  for (const [at, engine] of engines.entries()) {
    // Buffered clicks never ask SQL: they are measured once.
    const kinds: readonly Kind[] = at === engines.length - 1 ? ["buffered", "stored"] : ["stored"];
    const wanted = kinds.filter((kind) => !values.kind || values.kind === kind);
    rows.push(...(await measureOn(engine, wanted, size)));
  }
  printTable("Clicks beside a bare redirect", rows);
  if (args.length > 0) return console.log("Only a run without options is recorded.");
  writeResults("links", rows, { ...size, notes: NOTES });
}

async function measureOn(engine: Engine["name"], kinds: readonly Kind[], size: { clicks: number; rounds: number }) {
  say(`${engine}: the servers start`);
  const redis = await temporaryRedis();
  const ours = await startServer({ do: "serve", side: "ours", socketPath: redis.socketPath, engine });
  const bare = await startServer({ do: "serve", side: "bare" });
  const theirRedis = await temporaryRedis();
  const byHand = await startServer({ do: "serve", side: "by hand", socketPath: theirRedis.socketPath, engine });
  try {
    const rows: Row[] = [];
    for (const kind of kinds)
      for (const door of DOORS)
        for (const coming of COMINGS) {
          const peers = kind === "stored" && door === "POST /l/{code}" ? { bare, byHand } : { bare };
          rows.push(...(await compare(ours, peers, engine, { kind, door, coming }, size)));
        }
    return rows;
  } finally {
    for (const { child } of [ours, bare, byHand]) {
      child.send({ do: "stop" } satisfies Wish);
      await once(child, "exit");
    }
    await redis.close();
    await theirRedis.close();
  }
}

async function compare(
  ours: Server,
  peers: { readonly bare: Server; readonly byHand?: Server },
  engine: Engine["name"],
  { kind, door, coming }: { readonly kind: Kind; readonly door: Door; readonly coming: Coming },
  { clicks, rounds }: { clicks: number; rounds: number },
): Promise<readonly ClickRow[]> {
  const results: { readonly ours: Load[]; readonly bare: Load[]; readonly byHand: Load[] } = {
    ours: [],
    bare: [],
    byHand: [],
  };
  const load = (server: Server, at: Door, codes: readonly string[]) =>
    loadedBy(
      codes.map((code) => requestOf(at, code)),
      server,
      coming,
    );
  /** A side that keeps clicks, with links of its own. */
  const keeping = async (server: Server, at: Door, to: Load[]) => {
    const codes = (await server.ask({ do: "make", kind, count: clicks })) as readonly string[];
    to.push(await load(server, at, codes));
    const kept = await server.ask({ do: "count" });
    if (kept !== clicks) throw new Error(`${kept} of ${clicks} clicks were kept`);
  };
  const { bare, byHand } = peers;
  const anyCodes = Array.from({ length: clicks }, (_, at) => `bench${at}`);
  for (let round = 0; round < WARM_UP + rounds; round++) {
    const sides = [
      () => keeping(ours, door, results.ours),
      async () => void results.bare.push(await load(bare, "POST /l/{code}", anyCodes)),
      ...(byHand ? [() => keeping(byHand, "POST /kept/{code}", results.byHand)] : []),
    ];
    if (round % 2 === 1) sides.reverse();
    for (const side of sides) await side();
  }
  const where = kind === "buffered" ? "buffered" : `stored in ${engine}`;
  const row = (what: string, unit: string, field: keyof Load, peer: "bare" | "byHand"): Row => {
    const [a, b] = [results.ours, results[peer]].map((loads) => loads.slice(WARM_UP).map((one) => one[field]));
    const [mine, theirs] = [median(a!), median(b!)];
    const ratio = field === "rate" ? mine / theirs : theirs / mine;
    const [metric, peerName] = [`${door}, ${where}, ${coming}: ${what}`, peer === "bare" ? BARE : BY_HAND];
    return { metric, unit, ours: mine, peer: theirs, peerName, ratio, rounds: { ours: a!, peer: b! } };
  };
  const clicked = row("clicks", "requests/s", "rate", "bare");
  say(`${clicked.metric}: ${readable(clicked.ours)} of ${readable(clicked.peer)} requests/s`);
  return [
    { ...clicked, limit: clicked.peer * GOAL },
    row("processor time of the server", "µs/request", "cpu", "bare"),
    ...(byHand ? [row("clicks", "requests/s", "rate", "byHand")] : []),
  ];
}

interface Server {
  readonly child: ChildProcess;
  readonly port: number;
  ask(wish: Wish): Promise<unknown>;
}

async function startServer(wish: Wish): Promise<Server> {
  const file = fileURLToPath(
    new URL(`./links-server${import.meta.url.endsWith(".ts") ? ".ts" : ".js"}`, import.meta.url),
  );
  const child = fork(file, { stdio: ["ignore", "ignore", "inherit", "ipc"] });
  const ask = async (asked: Wish) => {
    child.send(asked);
    return ((await once(child, "message")) as [{ answer: unknown }])[0].answer;
  };
  return { child, ask, port: (await ask(wish)) as number };
}

/** As many browsers as there are versions: whoever knows a program by its name must look at each of them. */
const agentOf = (index: number) =>
  `Mozilla/5.0 (iPhone; CPU iPhone OS 18_${index % 10} like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.${index % 20} Mobile/15E${100 + (index % 200)} Safari/604.1`;

let made = 0;

function requestOf(door: Door, code: string): Buffer {
  const index = made++;
  const isForm = door !== "POST /api/1/notifications/complete";
  const path = isForm ? door.slice("POST ".length).replace("{code}", code) : "/api/1/notifications/complete";
  const body = isForm ? "" : JSON.stringify({ code });
  const headers = {
    host: "app.example.com",
    "user-agent": agentOf(index),
    accept: isForm ? "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8" : "application/json",
    "accept-language": "en-US,en;q=0.9",
    "content-type": isForm ? "application/x-www-form-urlencoded" : "application/json",
    ...(isForm ? { referer: `https://app.example.com/l/${code}` } : { visitor: `crl_vis_${index}` }),
    "content-length": String(body.length),
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.from(`POST ${path} HTTP/1.1\r\n${lines.join("")}\r\n${body}`);
}

async function cpuOf({ ask }: Server): Promise<number> {
  const { user, system } = (await ask({ do: "cpu" })) as NodeJS.CpuUsage;
  return user + system;
}

async function loadedBy(requests: readonly Buffer[], server: Server, coming: Coming): Promise<Load> {
  const before = await cpuOf(server);
  const started = performance.now();
  let next = 0;
  const one = async () => {
    if (coming === "connections kept open") return clicksOn(server, () => requests[next++]);
    while (next < requests.length) {
      let only: Buffer | undefined = requests[next++]!;
      await clicksOn(server, () => {
        const request = only;
        only = undefined;
        return request;
      });
    }
  };
  await Promise.all(Array.from({ length: PEOPLE }, one));
  const took = (performance.now() - started) / 1000;
  return { rate: requests.length / took, cpu: ((await cpuOf(server)) - before) / requests.length };
}

/** Addresses of the loopback to come from, so that connections which have just ended use up no ports of the next ones. */
const SOURCES = 100;
let came = 0;

/** Opens a connection, makes one request after the other on it, and closes it. */
async function clicksOn(server: Server, take: () => Buffer | undefined): Promise<void> {
  const localAddress = `127.0.0.${2 + (came++ % SOURCES)}`;
  const socket = connect({ host: "127.0.0.1", port: server.port, noDelay: true, localAddress });
  await new Promise<void>((resolve, reject) => {
    let rest = "";
    const send = () => {
      const request = take();
      if (request) socket.write(request);
      else socket.end(resolve);
    };
    socket.on("error", reject);
    socket.on("connect", send);
    socket.on("data", (chunk) => {
      rest += chunk.toString("latin1");
      const end = rest.indexOf("\r\n\r\n");
      if (end < 0) return;
      const length = Number(/\r\ncontent-length: (\d+)/i.exec(rest)?.[1] ?? 0);
      if (rest.length < end + 4 + length) return;
      if (!/^HTTP\/1\.1 (200|303) /.test(rest)) return reject(new Error(`a click was answered ${rest.slice(0, 600)}`));
      rest = "";
      send();
    });
  });
}
