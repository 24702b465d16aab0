import { createHash } from "node:crypto";
import type { FastifyInstance } from "fastify";
import type { Domain } from "../../domain.ts";
import { DOCS_PATH, displayName, OPENAPI_PATH } from "./docs.ts";
import { ICON_ICO, ICON_PATH, ICON_SVG } from "./icon.ts";
import { isReady, type Readiness } from "./readiness.ts";

const PART_NAMES: Readonly<Record<keyof Readiness, string>> = {
  redis: "Redis",
  sql: "SQL database",
  scripts: "Redis scripts",
  subscriber: "Redis messages",
};

const STYLE = `
:root { color-scheme: light dark; --ink: #1c2733; --soft: #5b6b7c; --ground: #f4f6f9; --card: #fff; --line: #dfe5ec;
  --accent: #2b4c7e; --on-accent: #fff; --good: #1f7a4d; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6ecf3; --soft: #9fb0c2; --ground: #10161d; --card: #18212b;
  --line: #2a3744; --accent: #9cc0f5; --on-accent: #10203a; --good: #5fd39a; --bad: #ff8a80; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { max-width: 46rem; margin: 0 auto; padding: clamp(1.5rem, 6vw, 4.5rem) 1.25rem 3rem; }
header { display: flex; gap: 1.1rem; align-items: center; }
header svg { width: 4rem; height: 4rem; flex: none; }
h1 { font-size: 2rem; line-height: 1.15; margin: 0; letter-spacing: -0.02em; }
header p { margin: 0.15rem 0 0; color: var(--soft); }
.lead { font-size: 1.1rem; margin: 1.6rem 0; max-width: 38rem; }
nav { display: flex; flex-wrap: wrap; gap: 0.6rem; margin-bottom: 2rem; }
nav a { text-decoration: none; padding: 0.6rem 1.05rem; border-radius: 0.6rem; border: 1px solid var(--line);
  background: var(--card); color: var(--accent); font-weight: 600; }
nav a.first { background: var(--accent); border-color: var(--accent); color: var(--on-accent); }
nav a:hover, nav a:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 0.9rem; padding: 1.15rem 1.35rem;
  margin-bottom: 1.1rem; }
h2 { font-size: 1.05rem; margin: 0 0 0.75rem; display: flex; align-items: center; gap: 0.6rem; }
h2.good::before, h2.bad::before { content: ""; width: 0.7rem; height: 0.7rem; border-radius: 50%; background: var(--good); }
h2.bad::before { background: var(--bad); }
ul { list-style: none; margin: 0; padding: 0; display: grid; gap: 0.5rem 2.5rem;
  grid-template-columns: repeat(auto-fill, minmax(min(15rem, 100%), 1fr)); }
li { display: flex; justify-content: space-between; gap: 1rem; }
li span:last-child { color: var(--soft); white-space: nowrap; }
li span.good { color: var(--good); font-weight: 600; }
li span.bad { color: var(--bad); font-weight: 600; }
footer { color: var(--soft); font-size: 0.9rem; }
code { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; font-size: 0.92em; }
`;

const POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash("sha256").update(STYLE).digest("base64")}'`,
  "img-src 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "form-action 'none'",
].join("; ");

/** The first page of an installation: what runs here, whether it is well, and where to go next. */
export function serveLanding(
  app: FastifyInstance,
  options: { domains: readonly Domain[]; version: string; readiness: () => Promise<Readiness> },
): void {
  const schema = { hide: true };
  app.get("/", { schema }, async (_request, reply) =>
    reply
      .type("text/html; charset=utf-8")
      .header("content-security-policy", POLICY)
      .header("cache-control", "no-store")
      .send(page(options.domains, options.version, await options.readiness())),
  );
  app.get(ICON_PATH, { schema }, async (_request, reply) =>
    reply.type("image/svg+xml").header("cache-control", "public, max-age=86400").send(ICON_SVG),
  );
  app.get("/favicon.ico", { schema }, async (_request, reply) =>
    reply.type("image/x-icon").header("cache-control", "public, max-age=86400").send(ICON_ICO),
  );
}

function page(domains: readonly Domain[], version: string, readiness: Readiness): string {
  const ready = isReady(readiness);
  const state = ready
    ? '<h2 id="parts" class="good">Everything works</h2>'
    : '<h2 id="parts" class="bad">Not everything works</h2>';
  const parts = (Object.keys(PART_NAMES) as (keyof Readiness)[]).map((part) =>
    readiness[part]
      ? `<li><span>${PART_NAMES[part]}</span><span class="good">works</span></li>`
      : `<li><span>${PART_NAMES[part]}</span><span class="bad">away</span></li>`,
  );
  const rooms = domains
    .filter((domain) => (domain.routes ?? []).length > 0)
    .map(({ name, routes = [] }) => {
      const count = routes.length === 1 ? "1 route" : `${routes.length} routes`;
      return `<li><span>${escapeHtml(displayName(name))}</span><span>${count}</span></li>`;
    });
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Carillon</title>
<link rel="icon" href="${ICON_PATH}" type="image/svg+xml">
<style>${STYLE}</style>
</head>
<body>
<main>
<header>${ICON_SVG.replace("<svg ", '<svg aria-hidden="true" ')}<div><h1>Carillon</h1><p>Version ${escapeHtml(version)}</p></div></header>
<p class="lead">The backend of an app that meets people every day. Its HTTP interface lives under <code>/api/1</code>.</p>
<nav aria-label="Where to go next">
<a class="first" href="/admin">Dashboard</a>
<a href="${DOCS_PATH}/">Interface reference</a>
<a href="${OPENAPI_PATH}">OpenAPI</a>
<a href="/healthz">Health</a>
<a href="/readyz">Readiness</a>
</nav>
<section aria-labelledby="parts">${state}<ul>${parts.join("")}</ul></section>
${rooms.length > 0 ? `<section aria-labelledby="rooms"><h2 id="rooms">What runs here</h2><ul>${rooms.join("")}</ul></section>` : ""}
<footer>Metrics for Prometheus are at <code>/metrics</code>.</footer>
</main>
</body>
</html>
`;
}

function escapeHtml(text: string): string {
  const entities: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
  return text.replaceAll(/[&<>"']/g, (sign) => entities[sign]!);
}
