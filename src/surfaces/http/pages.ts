import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import type { IncomingHttpHeaders } from "node:http";
import { extname, join } from "node:path";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { stageOf } from "../../infrastructure/sandbox/service.ts";
import type { Context } from "../../jobs/context.ts";
import type { Caller } from "../../kernel/route.ts";
import { callerOf } from "./caller.ts";
import { errors } from "./errors.ts";

interface Page {
  readonly paths: readonly string[];
  readonly file: string;
  /** Throws for callers who may not have the page. */
  readonly admit?: (ctx: Context, caller: { readonly caller: Caller; readonly headers: IncomingHttpHeaders }) => void;
}

/**
 * The web pages as the build left them: one HTML file an address, below which the page finds its own way, and assets whose
 * names change with their contents. All of them are read once, when the server is built.
 */
const PAGES: readonly Page[] = [
  { paths: ["/admin", "/admin/*"], file: "admin.html" },
  // Where simulated providers do not serve, there is no page of theirs either.
  { paths: ["/sandbox"], file: "sandbox.html", admit: stageOf },
];
const ASSETS_PATH = "/admin/assets/";

const TYPES: Readonly<Record<string, string>> = {
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".woff2": "font/woff2",
  ".json": "application/json; charset=utf-8",
};

/** What browsers may ask for, the best first, and how the build names it. */
const ENCODINGS = [
  ["br", ".br"],
  ["gzip", ".gz"],
] as const;

/** In the built page, where the nonce of each answer goes. */
const NONCE = "{{style-nonce}}";

const NOT_BUILT = `<!doctype html><html lang="en"><meta charset="utf-8"><title>Carillon</title>
<h1>The dashboard is not built</h1><p>Run <code>npm run build</code> and start Carillon again.</p></html>`;

export function servePages(app: FastifyInstance, ctx: Context, folder: string | undefined): void {
  const files = folder === undefined ? new Map<string, Buffer>() : filesOf(folder);
  const options = { schema: { hide: true }, config: { quiet: true } as object };
  app.get<{ Params: { name: string } }>(`${ASSETS_PATH}:name`, options, (request, reply) =>
    sendAsset(files, request.params.name, request, reply),
  );
  for (const { paths, file, admit } of PAGES) {
    const html = files.get(file)?.toString("utf8");
    const handler = (request: FastifyRequest, reply: FastifyReply) => {
      admit?.(ctx, { caller: callerOf(request), headers: request.headers });
      return sendPage(html, reply);
    };
    for (const path of paths) app.get(path, options, handler);
  }
}

function sendAsset(files: ReadonlyMap<string, Buffer>, name: string, request: FastifyRequest, reply: FastifyReply) {
  const plain = files.get(`assets/${name}`);
  const type = TYPES[extname(name)];
  if (!plain || !type) throw errors.not_found();
  reply.type(type).header("cache-control", "public, max-age=31536000, immutable").header("vary", "Accept-Encoding");
  const accepted = String(request.headers["accept-encoding"] ?? "");
  for (const [encoding, ending] of ENCODINGS) {
    const packed = files.get(`assets/${name}${ending}`);
    if (packed && new RegExp(`\\b${encoding}\\b(?!\\s*;\\s*q=0(\\.0*)?\\s*(,|$))`).test(accepted))
      return reply.header("content-encoding", encoding).send(packed);
  }
  return reply.send(plain);
}

/** The page is asked for anew each time, because it names the assets of the build that runs now. */
function sendPage(html: string | undefined, reply: FastifyReply) {
  reply.type("text/html; charset=utf-8").header("cache-control", "no-store");
  if (html === undefined) return reply.code(503).send(NOT_BUILT);
  const nonce = randomBytes(16).toString("base64");
  return reply.header("content-security-policy", policy(nonce)).send(html.replaceAll(NONCE, nonce));
}

/** Scripts only from files of the build; styles from there, or written by them with the nonce of this answer. */
function policy(nonce: string): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "frame-src 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "form-action 'self'",
  ].join("; ");
}

/** Every file of the build by its path; none when there is no build. */
function filesOf(folder: string): ReadonlyMap<string, Buffer> {
  try {
    const names = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
    const paths = names.map((entry) => join(entry.parentPath, entry.name));
    return new Map(paths.map((path) => [path.slice(folder.length + 1).replaceAll("\\", "/"), readFileSync(path)]));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return new Map();
    throw error;
  }
}
