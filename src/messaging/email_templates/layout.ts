import type { Brand } from "./brand.ts";
import { escapeHtml, type Html, html, join, ofBrand, type Text, text, type Value } from "./markup.ts";
import { FONT } from "./pen.ts";

/** What surrounds the content of every mail. */
export interface Frame<P> {
  readonly title: string;
  /** What mailboxes show beside the subject. */
  readonly preheader: Value<P>;
  /** Why somebody gets this mail, as the end of "You get this mail because". */
  readonly reason: string;
  /** Mails to a list say how to leave it. */
  readonly unsubscribeUrl: Value<P> | undefined;
}

const brandName: Value<unknown> = ofBrand((_, brand) => brand.name);
/** The logo, or the mark and the name. */
const LETTERHEAD: Html<unknown> = {
  kind: "html",
  pieces: [
    ofBrand((_: unknown, { logo, name, accent: colour }: Brand) =>
      logo
        ? `<img src="${escapeHtml(logo.src)}" width="${logo.width}" height="${logo.height}" alt="${escapeHtml(name)}" style="display:block;width:${logo.width}px;height:${logo.height}px;border:0;">`
        : `<span class="button" style="display:inline-block;width:13px;height:13px;margin-right:9px;border-radius:4px;background-color:${colour};"></span>${escapeHtml(name)}`,
    ),
  ],
};
const postal: Value<unknown> = ofBrand((_, brand) => brand.address ?? "");

// Dark colours twice: once for clients that follow the system, once for Outlook's own attribute.
const DARK: readonly (readonly [selector: string, style: string])[] = [
  [".ground", "background-color:#10161d !important;"],
  [".card", "background-color:#18212b !important;border-color:#2a3744 !important;"],
  [".well", "background-color:#10161d !important;border-color:#2a3744 !important;"],
  [".ink", "color:#e6ecf3 !important;"],
  [".soft", "color:#9fb0c2 !important;"],
  [".link", "color:#9cc0f5 !important;"],
  [".button", "border:1px solid #4a5c70 !important;"],
];
// No line begins with a dot, which would keep the mail from being sent as it is.
const rules = (prefix: string) => DARK.map(([selector, style]) => `${prefix} ${selector} { ${style} }`).join("\n");

const STYLE: Html<unknown> = {
  kind: "html",
  pieces: [
    `<style>
:root { color-scheme: light dark; supported-color-schemes: light dark; }
body { margin: 0; padding: 0; width: 100% !important; -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
table { mso-table-lspace: 0; mso-table-rspace: 0; }
h1, p, span, td { overflow-wrap: break-word; word-break: break-word; }
@media (max-width: 520px) {
 .outer { padding: 16px 8px 28px !important; }
 .inner { padding: 26px 22px 12px !important; }
 .side { padding-left: 22px !important; padding-right: 22px !important; }
 .wide { width: 100% !important; }
 .code { font-size: 29px !important; letter-spacing: 4px !important; }
}
@media (prefers-color-scheme: dark) {
${rules("")}
}
${rules("[data-ogsc]")}
</style>`,
  ],
};

// Keeps the first words of the content out of the mailbox's line of preview.
const FILLER: Html<unknown> = {
  kind: "html",
  pieces: ["&#847;&zwnj;&nbsp;".repeat(60).replaceAll(/(.{126})/g, "$1\n")],
};

export function inFrame<P>(content: readonly Html<P>[], frame: Frame<P>): Html<P> {
  const { title, preheader, reason, unsubscribeUrl } = frame;
  const small = `font-family:${FONT};font-size:13px;line-height:20px;color:#5b6b7c;`;
  const leave =
    unsubscribeUrl === undefined
      ? html<P>``
      : html<P>`<br>
        <a href="${unsubscribeUrl}" class="soft" style="color:#5b6b7c;text-decoration:underline;">Unsubscribe</a>
        <br>${postal}`;
  return html<P>`<!doctype html>
    <html lang="en" xmlns="http://www.w3.org/1999/xhtml">
    <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="x-apple-disable-message-reformatting">
    <meta name="format-detection" content="telephone=no, date=no, address=no, email=no, url=no">
    <meta name="color-scheme" content="light dark">
    <meta name="supported-color-schemes" content="light dark">
    <title>${title}</title>
    ${STYLE}
    </head>
    <body class="ground" style="margin:0;padding:0;background-color:#f4f6f9;">
    <div style="display:none;max-height:0;max-width:0;overflow:hidden;opacity:0;mso-hide:all;font-size:1px;line-height:1px;">${preheader}
    ${FILLER}</div>
    <table role="presentation" width="100%" cellpadding="0" cellspacing="0" border="0" class="ground" style="background-color:#f4f6f9;">
    <tr><td align="center" class="outer" style="padding:36px 16px 48px;">
    <table role="presentation" width="100%" cellpadding="0" cellspacing="0" border="0" style="max-width:560px;">
    <tr><td class="side ink" style="padding:0 36px 16px;font-family:${FONT};font-size:17px;line-height:24px;font-weight:700;letter-spacing:-0.2px;color:#1c2733;">${LETTERHEAD}</td></tr>
    <tr><td>
    <table role="presentation" width="100%" cellpadding="0" cellspacing="0" border="0" class="card" style="border-collapse:separate;background-color:#ffffff;border:1px solid #dfe5ec;border-radius:14px;">
    <tr><td class="inner" style="padding:34px 36px 16px;">
    ${join("html", content)}
    </td></tr></table>
    </td></tr>
    <tr><td class="side soft" style="padding:20px 36px 0;${small}">You get this mail because ${reason}.${leave}</td></tr>
    </table>
    </td></tr></table>
    </body>
    </html>
    `;
}

export function inTextFrame<P>(content: Text<P>, { reason, unsubscribeUrl }: Frame<P>): Text<P> {
  const leave =
    unsubscribeUrl === undefined
      ? text<P>``
      : text<P>`
        Unsubscribe: ${unsubscribeUrl}
        ${postal}`;
  // Two dashes and a space: mail programs know that the signature starts here.
  return text<P>`${content}

    ${"-- "}
    ${brandName}
    You get this mail because ${reason}.${leave}`;
}
