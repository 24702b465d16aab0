import type { PreviewTags } from "./pages.ts";

const escaped = (text: string) => text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);

export const PAGE_HEADERS = {
  "content-type": "text/html; charset=utf-8",
  "cache-control": "no-store",
  "referrer-policy": "no-referrer",
  "x-robots-tag": "noindex",
};

const STYLE = `:root{color-scheme:light dark}
body{font:1.05rem/1.6 system-ui,sans-serif;margin:0;min-height:100vh;display:grid;place-items:center;
background:light-dark(#f6f5f2,#17181c);color:light-dark(#22242a,#e9e7e2)}
main{box-sizing:border-box;width:min(26rem,100%);padding:2.5rem 1.5rem;text-align:center}
h1{font-size:1.5rem;line-height:1.25;margin:0 0 .5rem}p{margin:.4rem 0 1.4rem;opacity:.8}
input,button{font:inherit;box-sizing:border-box;width:100%;padding:.75em 1em;border-radius:.7rem;border:1px solid #8886}
input{background:transparent;color:inherit;margin-bottom:.8rem}
button{border:0;background:#8a5a2b;color:#fff;cursor:pointer;font-weight:600}
button:focus-visible,input:focus-visible{outline:3px solid #c79a63;outline-offset:2px}
.note{font-size:.9rem}`;

function document(head: string, body: string): string {
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">${head}
<style>${STYLE}</style></head>
<body><main>${body}</main></body></html>
`;
}

function tagLines(tags: PreviewTags, url: string): string {
  const lines = [
    ["og:title", tags.title],
    ["og:description", tags.description],
    ["og:url", url],
    ...(tags.image ? [["og:image", tags.image]] : []),
  ];
  const metas = lines.map(([name, value]) => `<meta property="${name}" content="${escaped(value!)}">`);
  return `<title>${escaped(tags.title)}</title>${metas.join("")}`;
}

/**
 * What a link shows: a preview for chats, and for people a form that sends itself. Fetching it is no use of the link;
 * sending the form is, which programs that only fetch never do.
 */
export function linkPage(tags: PreviewTags, url: string, nonce: string): string {
  return document(
    tagLines(tags, url),
    `<h1>${escaped(tags.title)}</h1><p>${escaped(tags.description)}</p>
<form method="post" id="go"><button>Continue</button></form>
<script nonce="${nonce}">document.getElementById("go").submit()</script>`,
  );
}

/** The form for leaving with the code of a link, and what came of it. */
export function unsubscribePage(
  tags: PreviewTags,
  url: string,
  said?: { readonly text: string; readonly done: boolean },
): string {
  const note = said ? `<p class="note" role="status">${escaped(said.text)}</p>` : "";
  if (said?.done) return document(tagLines(tags, url), `<h1>Done</h1>${note}`);
  return document(
    tagLines(tags, url),
    `<h1>${escaped(tags.title)}</h1><p>${escaped(tags.description)}</p>${note}
<form method="post"><input type="email" name="email" autocomplete="email" required maxlength="511"
placeholder="you@example.com" aria-label="The address that got the mail"><button>Unsubscribe</button></form>`,
  );
}
