import { z } from "zod";
import type { Context } from "../../jobs/context.ts";
import type { LinkTarget } from "./entries.ts";
import { errors } from "./errors.ts";
import { settings } from "./settings.ts";

type Surroundings = Pick<Context, "config">;

/** Where a link leads: the app knows the page by its identifier, browsers are sent to its address. */
export interface Page<Extra extends z.ZodType = z.ZodType> {
  readonly identifier: string;
  readonly extra: Extra;
  /** Where a browser goes; the code is that of the link. */
  url(ctx: Surroundings, extra: z.output<Extra>, code: string): string;
}

export interface PreviewTags {
  readonly title: string;
  readonly description: string;
  readonly image: string | null;
}

/** How a link looks in a chat before it is followed. */
export interface Preview<Extra extends z.ZodType = z.ZodType> {
  readonly identifier: string;
  readonly extra: Extra;
  tags(ctx: Surroundings, extra: z.output<Extra>): PreviewTags;
}

const IDENTIFIER = /^[a-z][a-z0-9_]{0,63}$/;
const pages = new Map<string, Page>();
const previews = new Map<string, Preview>();

function declare<T extends { readonly identifier: string }>(known: Map<string, T>, what: string, added: T): void {
  if (!IDENTIFIER.test(added.identifier)) throw new TypeError(`${added.identifier} is not the name of a ${what}`);
  if (known.has(added.identifier)) throw new TypeError(`the ${what} ${added.identifier} is declared twice`);
  known.set(added.identifier, added);
}

/** Declares a page that links may lead to. */
export function definePage<Extra extends z.ZodType>(page: Page<Extra>): Page<Extra> {
  declare(pages, "page", page as unknown as Page);
  return page;
}

export function definePreview<Extra extends z.ZodType>(preview: Preview<Extra>): Preview<Extra> {
  declare(previews, "preview", preview as unknown as Preview);
  return preview;
}

const Nothing = z.strictObject({});

/** An address at the root of the site. */
export function atRoot({ config }: Surroundings, path: string): string {
  return config.get(settings.webRoot).replace(/\/+$/, "") + path;
}

const home = definePage({ identifier: "home", extra: Nothing, url: (ctx) => atRoot(ctx, "/") });
export const UNSUBSCRIBE_PAGE = "unsubscribe";
definePage({
  identifier: UNSUBSCRIBE_PAGE,
  extra: Nothing,
  url: (ctx, _extra, code) => atRoot(ctx, `/l/${code}/unsubscribe`),
});

const standard = definePreview({
  identifier: "default",
  extra: Nothing,
  tags: ({ config }) => ({
    title: config.get(settings.siteTitle),
    description: config.get(settings.siteDescription),
    image: config.get(settings.siteImage) ?? null,
  }),
});
definePreview({
  identifier: "example",
  extra: Nothing,
  tags: () => ({ title: "An example", description: "This is how a link looks before it is followed.", image: null }),
});
definePreview({
  identifier: "unsubscribe",
  extra: z.strictObject({ list: z.string().min(1).max(100) }),
  tags: (ctx, { list }) => ({ ...standard.tags(ctx, {}), title: "Unsubscribe", description: `Get no more ${list}.` }),
});

/** Null characters and halves of characters, as JSON writes them; SQL takes neither. */
const UNSTORABLE = /(?<!\\)(?:\\\\)*\\u(?:0000|d[89a-f])/i;

/** Refuses what could not be opened later. */
export function checkTarget(target: LinkTarget): void {
  const page = pages.get(target.page_identifier);
  if (!page) throw errors.unknown_page({ message: `there is no page ${target.page_identifier}` });
  const preview = previews.get(target.preview_identifier);
  if (!preview) throw errors.unknown_page({ message: `there is no preview ${target.preview_identifier}` });
  for (const [what, schema, extra] of [
    [`page ${page.identifier}`, page.extra, target.page_extra],
    [`preview ${preview.identifier}`, preview.extra, target.preview_extra],
  ] as const) {
    if (UNSTORABLE.test(JSON.stringify(extra)))
      throw errors.unknown_page({ message: `${what}: holds characters that cannot be stored` });
    const parsed = schema.safeParse(extra);
    if (!parsed.success) throw errors.unknown_page({ message: `${what}: ${z.prettifyError(parsed.error)}` });
  }
}

export interface OpenedPage {
  readonly page_identifier: string;
  readonly page_extra: Readonly<Record<string, unknown>>;
  readonly url: string;
}

export const homePage = (ctx: Surroundings): OpenedPage => ({
  page_identifier: home.identifier,
  page_extra: {},
  url: home.url(ctx, {}, ""),
});

/** Where a link leads now. A page that was declared when it was made, and is no more, becomes the landing page. */
export function openPage(ctx: Surroundings, target: LinkTarget, code: string): OpenedPage {
  const page = pages.get(target.page_identifier);
  const extra = page?.extra.safeParse(target.page_extra);
  if (!page || !extra?.success) return homePage(ctx);
  return {
    page_identifier: page.identifier,
    page_extra: target.page_extra,
    url: page.url(ctx, extra.data, code),
  };
}

/** The tags of a link, or of the site where there is none. */
export function tagsOf(ctx: Surroundings, target: LinkTarget | undefined): PreviewTags {
  const preview = target && previews.get(target.preview_identifier);
  const extra = preview?.extra.safeParse(target?.preview_extra);
  return preview && extra?.success ? preview.tags(ctx, extra.data) : standard.tags(ctx, {});
}
