import {
  each,
  type Fragment,
  given,
  type Html,
  html,
  join,
  lines,
  ofBrand,
  type Slot,
  type Text,
  text,
  type Value,
} from "./markup.ts";

/**
 * The blocks that mails are built of. Mail clients know tables and styles written into each element, little more; the
 * classes are for the two things that cannot be inline, dark colours and small screens (see layout.ts).
 */
export interface HtmlPen<P> {
  html(texts: TemplateStringsArray, ...slots: readonly Slot<"html", P>[]): Html<P>;
  /** Text of several lines, escaped. */
  lines(value: Value<P>): Html<P>;
  given<V>(pick: (p: P) => V | undefined, write: (pen: HtmlPen<V>) => Html<V>): Html<P>;
  each<V>(pick: (p: P) => readonly V[], write: (pen: HtmlPen<V>) => Html<V>): Html<P>;
  heading(content: Html<P>): Html<P>;
  paragraph(content: Html<P>): Html<P>;
  /** A paragraph that matters less: smaller and paler. */
  note(content: Html<P>): Html<P>;
  button(url: Value<P>, label: string | Value<P>): Html<P>;
  /** The address of a button once more, to be copied where the button does not work. */
  address(url: Value<P>): Html<P>;
  /** A code to be typed elsewhere. */
  code(value: Value<P>): Html<P>;
  /** Labels with values below each other. */
  facts(rows: readonly (readonly [label: string, value: Html<P>])[]): Html<P>;
  image(picture: { url: Value<P>; width: Value<P>; height: Value<P>; alt: Value<P> }): Html<P>;
}

export interface TextPen<P> {
  text(texts: TemplateStringsArray, ...slots: readonly Slot<"text", P>[]): Text<P>;
  given<V>(pick: (p: P) => V | undefined, write: (pen: TextPen<V>) => Text<V>): Text<P>;
  each<V>(pick: (p: P) => readonly V[], write: (pen: TextPen<V>) => Text<V>): Text<P>;
}

export const FONT = `-apple-system, BlinkMacSystemFont, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif`;
const MONO = `ui-monospace, SFMono-Regular, Menlo, Consolas, 'Liberation Mono', monospace`;
const BODY = `margin:0 0 16px;font-family:${FONT};font-size:16px;line-height:25px;color:#1c2733;`;

export function htmlPen<P>(): HtmlPen<P> {
  return {
    html,
    lines,
    given: (pick, write) => given(pick, write(htmlPen())),
    each: (pick, write) => each(pick, write(htmlPen())),
    heading: (content) => html`
      <h1 class="ink" dir="auto" style="margin:0 0 16px;font-family:${FONT};font-size:24px;line-height:31px;font-weight:700;letter-spacing:-0.3px;color:#1c2733;">${content}</h1>`,
    paragraph: (content) => html`
      <p class="ink" dir="auto" style="${BODY}">${content}</p>`,
    note: (content) => html`
      <p class="soft" dir="auto" style="margin:0 0 16px;font-family:${FONT};font-size:14px;line-height:21px;color:#5b6b7c;">${content}</p>`,
    button: (url, label) => html`
      <table role="presentation" cellpadding="0" cellspacing="0" border="0" class="wide" style="margin:24px 0 20px;border-collapse:separate;">
      <tr><td align="center" bgcolor="${accent}" class="button" style="border-radius:10px;background-color:${accent};mso-padding-alt:14px 28px;">
      <a href="${url}" target="_blank" rel="noopener noreferrer" style="display:block;padding:14px 28px;font-family:${FONT};font-size:16px;line-height:20px;font-weight:600;color:${onAccent};text-decoration:none;border-radius:10px;">${label}</a>
      </td></tr></table>`,
    address: (url) => html`
      <p class="soft" style="margin:0 0 16px;font-family:${FONT};font-size:14px;line-height:21px;color:#5b6b7c;">If the button does nothing, copy this address into your browser:<br>
      <a href="${url}" class="link" style="color:#2b4c7e;text-decoration:underline;word-break:break-all;overflow-wrap:anywhere;">${url}</a></p>`,
    code: (value) => html`
      <table role="presentation" width="100%" cellpadding="0" cellspacing="0" border="0" style="margin:24px 0;border-collapse:separate;">
      <tr><td align="center" class="well" style="padding:22px 12px;background-color:#f4f6f9;border:1px solid #dfe5ec;border-radius:12px;">
      <span class="ink code" style="font-family:${MONO};font-size:34px;line-height:40px;font-weight:700;letter-spacing:6px;color:#1c2733;">${value}</span>
      </td></tr></table>`,
    facts: (rows) => html`
      <table role="presentation" width="100%" cellpadding="0" cellspacing="0" border="0" class="well" style="margin:24px 0;border-collapse:separate;background-color:#f4f6f9;border:1px solid #dfe5ec;border-radius:12px;">
      ${join("html", rows.map(fact<P>))}
      </table>`,
    image: ({ url, width, height, alt }) => html`
      <img src="${url}" width="${width}" height="${height}" alt="${alt}" style="display:block;width:100%;max-width:100%;height:auto;margin:0 0 24px;border:0;border-radius:12px;">`,
  };
}

export function textPen<P>(): TextPen<P> {
  return {
    text,
    given: (pick, write) => given(pick, write(textPen())),
    each: (pick, write) => each(pick, write(textPen())),
  };
}

export const accent: Value<unknown> = ofBrand((_, brand) => brand.accent);
export const onAccent: Value<unknown> = ofBrand((_, brand) => brand.onAccent);

function fact<P>([label, value]: readonly [string, Html<P>], at: number): Fragment<"html", P> {
  // The first one keeps the same distance from the frame as the last.
  const top = at === 0 ? "16px" : "0";
  return html`
    <tr><td style="padding:${top} 20px 14px;">
    <span class="soft" style="display:block;font-family:${FONT};font-size:12px;line-height:18px;font-weight:600;letter-spacing:0.6px;text-transform:uppercase;color:#5b6b7c;">${label}</span>
    <span class="ink" dir="auto" style="display:block;font-family:${FONT};font-size:16px;line-height:24px;color:#1c2733;">${value}</span>
    </td></tr>`;
}
