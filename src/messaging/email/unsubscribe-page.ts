import { createHash } from "node:crypto";
import type { HeldEmail } from "../contacts/service.ts";
import type { Brand } from "../email_templates/service.ts";

/**
 * The pages behind a link for leaving. They work without scripts, cookies and signing in, on a phone and in the dark; what
 * they show is escaped, and opening one changes nothing, since scanners open every link of a mail.
 */
export interface ListOffer {
  readonly slug: string;
  readonly title: string;
  readonly doc: string;
}

export interface PageFacts {
  readonly brand: Brand;
  readonly email: string;
  /** The list that the mail belonged to. */
  readonly list: string;
  readonly lists: readonly ListOffer[];
  /** The address of the page itself; its forms lie below it. */
  readonly path: string;
  /** What holds mails back now; `unknown` while nobody can say. */
  readonly held: HeldEmail | undefined | "unknown";
}

/** What the page confirms above everything else. */
export type Happened = "left" | "came back" | "chose";

const STYLE = `
:root { color-scheme: light dark; --ink: #1c2733; --soft: #5b6b7c; --ground: #f4f6f9; --card: #fff; --line: #dfe5ec;
  --good: #1f7a4d; --good-ground: #e9f6ef; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6ecf3; --soft: #9fb0c2; --ground: #10161d; --card: #18212b;
  --line: #2a3744; --good: #6fdca6; --good-ground: #16302a; } }
* { box-sizing: border-box; }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; padding: 1.5rem 1rem 3rem; background: var(--ground);
  color: var(--ink); font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main { width: 100%; max-width: 29rem; }
.brand { display: flex; align-items: center; gap: 0.6rem; margin: 0 0.25rem 1rem; font-weight: 700; letter-spacing: -0.01em; }
.mark { width: 0.9rem; height: 0.9rem; border-radius: 0.27rem; background: var(--accent); flex: none; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 1rem; padding: clamp(1.4rem, 6vw, 2.2rem); }
h1 { font-size: 1.5rem; line-height: 1.25; letter-spacing: -0.02em; margin: 0 0 0.6rem; text-wrap: balance; }
p { margin: 0 0 1.2rem; overflow-wrap: anywhere; }
.soft, .card p.soft { color: var(--soft); font-size: 0.92rem; }
.card > :last-child, form > :last-child { margin-bottom: 0; }
.done { display: flex; gap: 0.6rem; align-items: center; margin: 0 0 1.2rem; padding: 0.7rem 0.9rem; border-radius: 0.7rem;
  background: var(--good-ground); color: var(--good); font-weight: 600; }
.done svg { flex: none; width: 1.2rem; height: 1.2rem; }
button { font: inherit; font-weight: 600; width: 100%; min-height: 3rem; padding: 0.6rem 1.2rem; border-radius: 0.7rem;
  border: 1px solid transparent; cursor: pointer; background: var(--accent); color: var(--on-accent); }
button.quiet { background: transparent; color: inherit; border-color: var(--line); }
button:hover { filter: brightness(1.07); }
button.quiet:hover { background: var(--ground); filter: none; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
@media (prefers-color-scheme: dark) { :focus-visible { outline-color: #9cc0f5; } button { border-color: #4a5c70; } }
hr { border: 0; border-top: 1px solid var(--line); margin: 1.7rem 0 1.4rem; }
fieldset { border: 0; margin: 0 0 1.2rem; padding: 0; display: grid; gap: 0.6rem; }
legend { padding: 0; margin: 0 0 0.7rem; font-weight: 650; }
label { display: flex; gap: 0.8rem; align-items: center; padding: 0.75rem 0.9rem; border: 1px solid var(--line);
  border-radius: 0.7rem; cursor: pointer; }
label:hover { background: var(--ground); }
label span { display: block; }
label strong { display: block; font-weight: 600; }
input[type="checkbox"] { width: 1.25rem; height: 1.25rem; margin: 0; flex: none; accent-color: var(--accent); }
footer { margin: 1rem 0.25rem 0; color: var(--soft); font-size: 0.85rem; }
`;

const CHECK =
  '<svg viewBox="0 0 20 20" fill="none" stroke="currentColor" stroke-width="2.2" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true"><path d="m4 10.5 4 4 8-9"/></svg>';

/** Styles are this page's own and the brand's two colours; nothing else is loaded, framed or run. */
export function pageHeaders(brand: Brand): Readonly<Record<string, string>> {
  const hash = createHash("sha256").update(styleOf(brand)).digest("base64");
  return {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": `default-src 'none'; style-src 'sha256-${hash}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`,
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-robots-tag": "noindex, nofollow",
    vary: "accept",
  };
}

/** The page of a link that works: what is now, and what can be changed about it. */
export function choicePage(facts: PageFacts, happened?: Happened): string {
  const { held } = facts;
  const beyondChoice = held !== undefined && held !== "unknown" && held.reason !== "User";
  if (beyondChoice && happened === undefined)
    return page(
      facts.brand,
      "We do not write to this address",
      `<p>No mails go to <b>${escaped(facts.email)}</b> at present, because earlier ones came back or were not wanted.</p>
<p class="soft">If that should change, please write to whoever sends you these mails.</p>`,
    );
  const everything = held !== undefined && held !== "unknown" && held.lists === undefined;
  const words = wordsOf(facts, happened, everything);
  return page(
    facts.brand,
    words.title,
    `${words.done === undefined ? "" : `<p class="done" role="status">${CHECK}<span>${words.done}</span></p>`}
<p>${words.text}</p>
${everything ? undoForm(facts) : leaveForm(facts, happened === undefined)}
${held === "unknown" || facts.lists.length < 2 || beyondChoice ? "" : `<hr>\n${choiceForm(facts)}`}`,
  );
}

function wordsOf({ email, list, lists, held }: PageFacts, happened: Happened | undefined, everything: boolean) {
  const address = `<b>${escaped(email)}</b>`;
  if (everything) {
    const all = held !== undefined && held !== "unknown" && held.scope === "all";
    const still = all ? "" : " Mails that you ask for yourself, such as sign-in codes, still arrive.";
    return {
      title: "You are unsubscribed",
      done: happened === undefined ? undefined : "Done. It holds from now on.",
      text: `${all ? "No more mails" : "No more reminders and news"} go to ${address}.${still}`,
    };
  }
  if (happened === "came back")
    return {
      title: "Good to have you back",
      done: "You are subscribed again.",
      text: `Mails go to ${address} as before.`,
    };
  if (happened === "chose")
    return { title: "What you get", done: "Your choice is saved.", text: `It holds for ${address} from now on.` };
  const title = lists.find(({ slug }) => slug === list)?.title;
  const about = title === undefined ? "" : ` This one belongs to <b>${escaped(title)}</b>.`;
  return {
    title: "Unsubscribe from these mails?",
    done: undefined,
    text: `We would send no more reminders and news to ${address}.${about}`,
  };
}

/** Whoever has just chosen to stay is not urged to leave. */
const leaveForm = ({ path }: PageFacts, isAsked: boolean) =>
  `<form method="post" action="${escaped(path)}"><input type="hidden" name="List-Unsubscribe" value="One-Click"><button${isAsked ? "" : ' class="quiet"'}>Unsubscribe from everything</button></form>`;

const undoForm = ({ path }: PageFacts) =>
  `<form method="post" action="${escaped(path)}/undo"><button class="quiet">Undo: subscribe me again</button></form>`;

function choiceForm({ path, lists, held }: PageFacts): string {
  const left = held === undefined || held === "unknown" ? [] : (held.lists ?? lists.map(({ slug }) => slug));
  const boxes = lists.map(
    ({ slug, title, doc }) =>
      `<label><input type="checkbox" name="list" value="${escaped(slug)}"${left.includes(slug) ? "" : " checked"}><span><strong>${escaped(title)}</strong><span class="soft">${escaped(doc)}</span></span></label>`,
  );
  return `<form method="post" action="${escaped(path)}/preferences"><input type="hidden" name="choose" value="lists">
<fieldset><legend>Or choose what you get</legend>
${boxes.join("\n")}
</fieldset>
<button class="quiet">Save my choice</button></form>`;
}

/** A page that only says something: a link that means nothing, too many tries, a wish that could not be kept. */
export function wordsPage(brand: Brand, title: string, text: string): string {
  return page(brand, title, `<p>${escaped(text)}</p>`);
}

/** The brand's colours as they are; the setting allows nothing but six hexadecimal digits. */
const styleOf = ({ accent, onAccent }: Brand) => `:root { --accent: ${accent}; --on-accent: ${onAccent}; }${STYLE}`;

function page(brand: Brand, title: string, body: string): string {
  const footer =
    brand.address === undefined ? "" : `<footer>${escaped(brand.name)}, ${escaped(brand.address)}</footer>`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${escaped(title)} · ${escaped(brand.name)}</title>
<style>${styleOf(brand)}</style>
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
</body>
</html>
`;
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

const escaped = (text: string) => text.replaceAll(/[&<>"']/g, (sign) => ENTITIES[sign]!);
