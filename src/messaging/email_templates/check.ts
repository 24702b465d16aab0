import type { Brand } from "./brand.ts";
import { isMailUrl } from "./parameters.ts";
import type { Rendered, Template } from "./template.ts";

export const MAX_HTML = 524_288;
export const MAX_TEXT = 131_072;
/** Large mailboxes cut a mail off above this. */
const CLIPPED_ABOVE = 102_400;

/** What is wrong with a template, seen through its examples; run at start, so that no broken template waits for a reader. */
export function faultsOf(template: Template, brand: Brand): readonly string[] {
  return template.examples.flatMap((example, index) => {
    const where = `${template.slug}, example ${index}`;
    const parsed = template.parameters.safeParse(example);
    if (!parsed.success)
      return parsed.error.issues.map(({ path, message }) => `${where}: ${path.join(".")} ${message}`);
    const rendered = template.render(parsed.data, brand);
    const subject = template.subject(parsed.data);
    return [
      ...faultsOfOutput(rendered),
      ...(subject.length < 1 || subject.length > 250 ? ["the subject is empty or longer than 250"] : []),
      ...(template.list === null ? [] : faultsOfList(rendered, parsed.data)),
    ].map((fault) => `${where}: ${fault}`);
  });
}

function faultsOfOutput({ html, text }: Rendered): readonly string[] {
  const tags = [...html.matchAll(/<img\b[^>]*>/gi)].map(([tag]) => tag);
  const targets = [...html.matchAll(/\b(?:href|src)="([^"]*)"/gi)].map(([, url]) => url!.replaceAll("&amp;", "&"));
  return [
    ...(Buffer.byteLength(html) > MAX_HTML ? [`the HTML has more than ${MAX_HTML} bytes`] : []),
    ...(Buffer.byteLength(text) > MAX_TEXT ? [`the text has more than ${MAX_TEXT} bytes`] : []),
    ...(text === "" ? ["there is no text part"] : []),
    ...tags
      .filter((tag) => !["alt", "width", "height"].every((name) => new RegExp(`\\s${name}="[^"]`).test(tag)))
      .map((tag) => `an image lacks alt, width or height: ${tag}`),
    ...targets.filter((url) => !/^cid:/.test(url) && !isMailUrl(url)).map((url) => `not an https address: ${url}`),
  ];
}

function faultsOfList({ html, text }: Rendered, parameters: unknown): readonly string[] {
  const { unsubscribeUrl } = parameters as { unsubscribeUrl: string };
  const escaped = unsubscribeUrl.replaceAll("&", "&amp;");
  return [
    ...(html.includes(`href="${escaped}"`) ? [] : ["the HTML has no link for unsubscribing"]),
    ...(text.includes(unsubscribeUrl) ? [] : ["the text has no address for unsubscribing"]),
  ];
}

/** What works, but could be better. */
export function warningsAbout(template: Template, { html }: Rendered, brand: Brand): readonly string[] {
  const size = Buffer.byteLength(html);
  return [
    ...(size > CLIPPED_ABOVE
      ? [`The HTML has ${size} bytes; large mailboxes cut mails off above ${CLIPPED_ABOVE}.`]
      : []),
    ...(template.list !== null && brand.address === undefined
      ? ["Mails to a list need a postal address in many countries: set CARILLON_EMAIL_POSTAL_ADDRESS."]
      : []),
  ];
}
