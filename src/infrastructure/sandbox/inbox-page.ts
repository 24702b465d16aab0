import { createHash } from "node:crypto";

/**
 * The inbox for people: a list that stays up to date, and one message with what happened to it and what may happen next.
 * The page itself holds no message; its script asks the inbox's own routes and writes texts as texts, never as markup.
 * The HTML of a mail is shown in a frame in which nothing runs.
 */
const STYLE = `
:root { color-scheme: light dark; --ink: #1c2733; --soft: #5b6b7c; --ground: #f4f6f9; --card: #fff; --line: #dfe5ec; --accent: #2b4c7e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6ecf3; --soft: #9fb0c2; --ground: #10161d; --card: #18212b; --line: #2a3744; --accent: #9cc0f5; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
header { display: flex; flex-wrap: wrap; gap: 0.6rem 1rem; align-items: center; padding: 0.8rem 1.2rem; border-bottom: 1px solid var(--line); background: var(--card); }
h1 { font-size: 1.1rem; margin: 0; } h2 { font-size: 1.2rem; margin: 0 0 0.3rem; overflow-wrap: anywhere; } h3 { font-size: 0.95rem; margin: 1.2rem 0 0.3rem; }
.soft { color: var(--soft); font-size: 0.9rem; }
input, select, button { font: inherit; padding: 0.35rem 0.7rem; border: 1px solid var(--line); border-radius: 0.5rem; background: var(--card); color: inherit; }
button { cursor: pointer; } button:hover { border-color: var(--accent); }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 1px; }
main { display: grid; grid-template-columns: minmax(16rem, 24rem) 1fr; min-height: calc(100vh - 4rem); }
@media (max-width: 50rem) { main { grid-template-columns: minmax(0, 1fr); } }
ol { min-width: 0; list-style: none; margin: 0; padding: 0; border-right: 1px solid var(--line); }
ol button { display: block; width: 100%; text-align: left; border: 0; border-bottom: 1px solid var(--line); border-radius: 0; padding: 0.7rem 1.2rem; }
ol button[aria-current="true"] { box-shadow: inset 4px 0 var(--accent); }
ol b, ol span { display: block; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
article { padding: 1.2rem; min-width: 0; }
iframe { width: 100%; height: 28rem; border: 1px solid var(--line); border-radius: 0.5rem; background: #fff; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: var(--card); border: 1px solid var(--line); border-radius: 0.5rem; padding: 0.8rem; }
ul { margin: 0; padding-left: 1.2rem; } .row { display: flex; flex-wrap: wrap; gap: 0.5rem; margin: 0.8rem 0; }
`;

const SCRIPT = `
const API = "/sandbox/api/inbox";
const list = document.querySelector("ol"), article = document.querySelector("article");
const filter = { channel: document.querySelector("select"), to: document.querySelector("input") };
let chosen = decodeURIComponent(location.hash.slice(1));
const make = (tag, text, parent) => {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (parent) parent.append(element);
  return element;
};
const when = (at) => new Date(at * 1000).toLocaleTimeString();
const ask = async (path, init) => {
  const answer = await fetch(API + path, init);
  return answer.status === 204 ? undefined : answer.json();
};
const query = () => {
  const search = new URLSearchParams({ limit: "200" });
  for (const [name, field] of Object.entries(filter)) if (field.value) search.set(name, field.value);
  return "?" + search;
};
const ACTIONS = {
  expo: [["Deliver", { action: "deliver" }], ["Fail", { action: "fail" }]],
  twilio: [["Deliver", { action: "deliver" }], ["Undelivered", { action: "fail" }], ["Reply STOP", { action: "reply", text: "STOP" }],
    ["Reply START", { action: "reply", text: "START" }], ["Report again", { action: "resend" }]],
  ses: [["Deliver", { action: "deliver" }], ["Bounce", { action: "bounce" }],
    ["Soft bounce", { action: "bounce", bounce_type: "Transient", bounce_sub_type: "MailboxFull" }],
    ["Complain", { action: "complain" }], ["Unsubscribe", { action: "unsubscribe" }], ["Report again", { action: "resend" }]],
  smtp: [["Unsubscribe", { action: "unsubscribe" }]],
};
async function show() {
  const message = chosen && (await ask("/" + encodeURIComponent(chosen)));
  article.replaceChildren();
  if (!message || !message.id) return void (make("p", "Choose a message.", article).className = "soft");
  make("h2", message.subject || message.text || message.to, article);
  make("p", message.provider + " · " + (message.direction === "in" ? "from " + message.from : "to " + message.to) + " · " + message.status, article).className = "soft";
  const row = make("div", undefined, article);
  row.className = "row";
  if (message.direction === "out") for (const [label, action] of ACTIONS[message.provider] || [])
    make("button", label, row).onclick = async () => {
      const answer = await ask("/" + encodeURIComponent(message.id) + "/actions",
        { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(action) });
      await show();
      if (answer && answer.message) make("p", answer.message, row);
    };
  make("button", "Delete", row).onclick = async () => { await ask("/" + encodeURIComponent(message.id), { method: "DELETE" }); chosen = ""; await draw(); await show(); };
  const { mail } = message;
  if (mail) {
    const raw = make("a", "Download .eml", row);
    raw.href = API + "/" + encodeURIComponent(message.id) + "/raw";
    if (mail.code) make("p", "Code in it: " + mail.code, article);
    if (mail.html) {
      const frame = make("iframe", undefined, article);
      frame.title = "The mail";
      frame.setAttribute("sandbox", "");
      frame.srcdoc = mail.html;
    }
  }
  make("h3", "Text", article);
  make("pre", message.text, article);
  const lines = (title, items) => {
    if (items.length === 0) return;
    make("h3", title, article);
    const ul = make("ul", undefined, article);
    for (const item of items) make("li", item, ul);
  };
  lines("What happened", message.history.map((step) => when(step.at) + "  " + step.status + (step.error ? " (" + step.error + ")" : "")));
  lines("Webhooks", message.webhooks.map((call) => when(call.at) + "  " + call.kind + " → " + (call.answered ?? "no answer")));
  if (mail) {
    lines("Links", mail.links);
    lines("Attachments", mail.attachments.map((file) => (file.filename || "inline") + ", " + file.content_type + ", " + file.size + " bytes"));
    lines("Headers", mail.headers.map((header) => header.name + ": " + header.value));
  }
}
async function draw() {
  const { items = [] } = (await ask(query())) || {};
  list.replaceChildren();
  if (items.length === 0) make("p", "Nothing was sent yet.", make("li", undefined, list)).className = "soft";
  for (const item of items) {
    const button = make("button", undefined, make("li", undefined, list));
    button.setAttribute("aria-current", String(item.id === chosen));
    make("b", item.subject || item.text, button);
    make("span", when(item.at) + " · " + item.channel + " · " + (item.direction === "in" ? "from " + item.from : item.to) + " · " + item.status, button).className = "soft";
    button.onclick = async () => { chosen = item.id; location.hash = item.id; await draw(); await show(); };
  }
  return items[0] ? items[0].at : 0;
}
for (const field of Object.values(filter)) field.oninput = draw;
document.querySelector("#clear").onclick = async () => { await ask("", { method: "DELETE" }); chosen = ""; await draw(); await show(); };
let newest = await draw();
await show();
for (;;) {
  await ask("/wait?timeout=5&since=" + newest).catch(() => new Promise((resolve) => setTimeout(resolve, 2000)));
  newest = await draw().catch(() => newest);
}
`;

export const INBOX_PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sandbox inbox</title>
<style>${STYLE}</style>
</head>
<body>
<header>
<h1>Sandbox inbox</h1><span class="soft">What was sent to the simulated providers. Nobody was reached.</span>
<label>Channel <select><option value="">all</option><option>push</option><option>sms</option><option>email</option></select></label>
<label>To <input type="search" placeholder="part of an address"></label>
<button id="clear" type="button">Empty</button>
</header>
<main><ol aria-label="Messages"></ol><article aria-live="polite"></article></main>
<script type="module">${SCRIPT}</script>
</body>
</html>
`;

const scriptHash = createHash("sha256").update(SCRIPT).digest("base64");

/** Only its own script runs, and it asks only this house; pictures and styles are those that mails bring. */
export const INBOX_POLICY = [
  "default-src 'none'",
  `script-src 'sha256-${scriptHash}'`,
  "style-src 'unsafe-inline'",
  "img-src 'self' https: data:",
  "connect-src 'self'",
  "frame-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");
