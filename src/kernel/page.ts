import { createHash } from "node:crypto";

/**
 * The pages that people see who come with a link and nothing else: no account, no cookie, perhaps no scripts. They have one
 * look, in light and dark and on a phone; they load nothing, cannot be framed, and what they show is escaped.
 */
export interface PageBrand {
  readonly name: string;
  /** `#rrggbb`; whoever configures it allows nothing else. */
  readonly accent: string;
  /** What is readable on the accent. */
  readonly onAccent: string;
  /** A postal address for the foot of the page. */
  readonly address?: string | undefined;
}

const STYLE = `
:root { color-scheme: light dark; --ink: #1c2733; --soft: #566575; --ground: #f4f6f9; --card: #fff; --line: #dfe5ec;
  --edge: #7b8a9a; --good: #1b6e45; --good-ground: #e9f6ef; --bad: #9c2b21; --bad-ground: #fcefed; --shade: 0 1px 2px #1c27330d, 0 12px 32px #1c273312; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6ecf3; --soft: #a6b5c6; --ground: #10161d; --card: #18212b;
  --line: #2a3744; --edge: #71839a; --good: #6fdca6; --good-ground: #16302a; --bad: #ffb3aa; --bad-ground: #3a1f1d; --shade: none; } }
* { box-sizing: border-box; }
body { margin: 0; min-height: 100vh; min-height: 100svh; display: grid; place-items: center; padding: 1.5rem 1rem 3rem;
  background: var(--ground); color: var(--ink);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main { width: 100%; max-width: 29rem; }
.brand { display: flex; align-items: center; gap: 0.6rem; margin: 0 0.25rem 1rem; font-weight: 700; letter-spacing: -0.01em; }
.mark { width: 0.9rem; height: 0.9rem; border-radius: 0.27rem; background: var(--accent); flex: none; }
.card { position: relative; overflow: hidden; background: var(--card); border: 1px solid var(--line); border-radius: 1rem;
  padding: clamp(1.4rem, 6vw, 2.2rem); box-shadow: var(--shade); }
h1 { font-size: 1.5rem; line-height: 1.25; letter-spacing: -0.02em; margin: 0 0 0.6rem; text-wrap: balance; overflow-wrap: anywhere; }
p { margin: 0 0 1.2rem; overflow-wrap: anywhere; }
.soft, .card p.soft { color: var(--soft); font-size: 0.92rem; }
.card > :last-child, form > :last-child { margin-bottom: 0; }
.said { display: flex; gap: 0.6rem; align-items: center; margin: 0 0 1.2rem; padding: 0.7rem 0.9rem; border-radius: 0.7rem;
  background: var(--good-ground); color: var(--good); font-weight: 600; }
.said.bad { background: var(--bad-ground); color: var(--bad); }
.said svg { flex: none; width: 1.2rem; height: 1.2rem; }
.field { display: block; margin: 0 0 0.4rem; font-weight: 600; }
input[type="email"] { font: inherit; width: 100%; min-height: 3rem; padding: 0.6rem 0.9rem; margin: 0 0 1rem; border-radius: 0.7rem;
  border: 1px solid var(--edge); background: var(--card); color: inherit; }
::placeholder { color: var(--soft); opacity: 1; }
button { font: inherit; font-weight: 600; width: 100%; min-height: 3rem; padding: 0.6rem 1.2rem; border-radius: 0.7rem;
  border: 1px solid transparent; cursor: pointer; background: var(--accent); color: var(--on-accent); }
button.quiet { background: transparent; color: inherit; border-color: var(--edge); }
button:hover { filter: brightness(1.07); }
button.quiet:hover { background: var(--ground); filter: none; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
@media (prefers-color-scheme: dark) { :focus-visible { outline-color: #9cc0f5; } button { border-color: #5b6f86; } }
hr { border: 0; border-top: 1px solid var(--line); margin: 1.7rem 0 1.4rem; }
fieldset { border: 0; margin: 0 0 1.2rem; padding: 0; display: grid; gap: 0.6rem; }
legend { padding: 0; margin: 0 0 0.7rem; font-weight: 650; }
label.choice { display: flex; gap: 0.8rem; align-items: center; padding: 0.75rem 0.9rem; border: 1px solid var(--line);
  border-radius: 0.7rem; cursor: pointer; }
label.choice:hover { background: var(--ground); }
label.choice span { display: block; }
label.choice strong { display: block; font-weight: 600; }
input[type="checkbox"] { width: 1.25rem; height: 1.25rem; margin: 0; flex: none; accent-color: var(--accent); }
footer { margin: 1rem 0.25rem 0; color: var(--soft); font-size: 0.85rem; }
.going .card::before { content: ""; position: absolute; inset: 0 0 auto; height: 3px; background: var(--accent); transform-origin: 0 50%;
  animation: going 1.4s ease-out both; }
@keyframes going { from { transform: scaleX(0); } to { transform: scaleX(0.92); } }
@media (prefers-reduced-motion: reduce) { .going .card::before { animation: none; } }
`;

const CHECK = '<path d="m4 10.5 4 4 8-9"/>';
const ALAS = '<circle cx="10" cy="10" r="8.2" stroke-width="1.8"/><path d="M10 6v4.4M10 13.8v.1"/>';

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

export const escaped = (text: string): string => text.replaceAll(/[&<>"']/g, (sign) => ENTITIES[sign]!);

const hashed = (text: string) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
const styleOf = ({ accent, onAccent }: PageBrand) => `:root { --accent: ${accent}; --on-accent: ${onAccent}; }${STYLE}`;

interface Allowed {
  /** The one script that may run, to the letter. */
  readonly script?: string;
  /** Where forms may lead beside this site. */
  readonly formAction?: string;
}

/** Hashes are worked out once for each brand and script. */
const policies = new Map<string, string>();

function policyOf(brand: PageBrand, { script, formAction }: Allowed): string {
  const name = [brand.accent, brand.onAccent, script, formAction].join("\n");
  const known = policies.get(name);
  if (known) return known;
  const policy = [
    "default-src 'none'",
    `style-src ${hashed(styleOf(brand))}`,
    ...(script === undefined ? [] : [`script-src ${hashed(script)}`]),
    `form-action 'self'${formAction === undefined ? "" : ` ${formAction}`}`,
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join("; ");
  if (policies.size > 100) policies.clear();
  policies.set(name, policy);
  return policy;
}

/** Styles are the page's own and the brand's two colours; nothing else is loaded, framed or run. */
export function pageHeaders(brand: PageBrand, allowed: Allowed = {}): Record<string, string> {
  return {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": policyOf(brand, allowed),
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-robots-tag": "noindex, nofollow",
    vary: "accept",
  };
}

/** A line above everything else that says what came of it; the text is escaped. */
export function said(text: string, well = true): string {
  const picture = `<svg viewBox="0 0 20 20" fill="none" stroke="currentColor" stroke-width="2.2" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">${well ? CHECK : ALAS}</svg>`;
  return `<p class="said${well ? "" : " bad"}" role="${well ? "status" : "alert"}">${picture}<span>${escaped(text)}</span></p>`;
}

export interface PageParts {
  /** Of the window and above the card's words. */
  readonly title: string;
  /** Markup below the title. */
  readonly body: string;
  /** Further elements of the head. */
  readonly head?: string;
  readonly script?: string;
}

export function publicPage(brand: PageBrand, { title, body, head = "", script }: PageParts): string {
  const footer =
    brand.address === undefined ? "" : `<footer>${escaped(brand.name)}, ${escaped(brand.address)}</footer>`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<meta name="theme-color" media="(prefers-color-scheme: light)" content="#f4f6f9">
<meta name="theme-color" media="(prefers-color-scheme: dark)" content="#10161d">
<title>${title === brand.name ? escaped(title) : `${escaped(title)} · ${escaped(brand.name)}`}</title>
${head}<style>${styleOf(brand)}</style>
</head>
<body>
<main>
<div class="brand"><span class="mark" aria-hidden="true"></span>${escaped(brand.name)}</div>
<div class="card">
<h1>${escaped(title)}</h1>
${body}
</div>
${footer}
</main>
${script === undefined ? "" : `<script>${script}</script>\n`}</body>
</html>
`;
}
