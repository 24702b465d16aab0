import type { Context } from "../../jobs/context.ts";
import { escaped, pageHeaders, publicPage, said } from "../../kernel/page.ts";
import type { RouteReply } from "../../kernel/route.ts";
import { emailSettings } from "../email/service.ts";
import { brandOf } from "../email_templates/service.ts";
import { atRoot, type PreviewTags } from "./pages.ts";

type Surroundings = Pick<Context, "config">;

/** Sends the form as soon as the page is there; who has no scripts presses the button. */
const GO = 'document.body.className="going";document.forms[0].submit()';

const GO_FORM = '<form method="post"><button>Continue</button></form>';

/** What chats and search engines read. */
function tagLines(brandName: string, { title, description, image }: PreviewTags, url: string): string {
  const lines = [
    ["og:type", "website"],
    ["og:site_name", brandName],
    ["og:title", title],
    ["og:description", description],
    ["og:url", url],
    ...(image ? [["og:image", image]] : []),
    ["twitter:card", image ? "summary_large_image" : "summary"],
  ];
  const metas = lines.map(([name, value]) => {
    const attribute = name!.startsWith("og:") ? "property" : "name";
    return `<meta ${attribute}="${name}" content="${escaped(value!)}">\n`;
  });
  return `<meta name="description" content="${escaped(description)}">\n${metas.join("")}`;
}

/** A form may lead wherever links lead: to other sites, and to this one also where it has no certificate. */
function beyond({ config }: Surroundings): string {
  const { protocol, origin } = new URL(atRoot({ config }, "/"));
  return protocol === "https:" ? "https:" : `https: ${origin}`;
}

/**
 * What a link shows: a preview for chats, and for people a form that sends itself. Fetching it is no use of the link;
 * sending the form is, which programs that only fetch never do.
 */
export function linkPage(ctx: Surroundings, tags: PreviewTags, code: string): RouteReply {
  const brand = brandOf(ctx.config);
  return {
    status: 200,
    headers: pageHeaders(brand, { script: GO, formAction: beyond(ctx) }),
    body: publicPage(brand, {
      // The site's own name stands above the card already.
      ...(tags.title === brand.name
        ? { title: tags.description, body: GO_FORM }
        : { title: tags.title, body: `<p>${escaped(tags.description)}</p>\n${GO_FORM}` }),
      head: tagLines(brand.name, tags, atRoot(ctx, `/l/${code}`)),
      script: GO,
    }),
  };
}

/** A link that leads nowhere, for people; programs are told as everywhere else. */
export function nowherePage(ctx: Surroundings, status = 404): RouteReply {
  const brand = brandOf(ctx.config);
  return {
    status,
    headers: pageHeaders(brand),
    body: publicPage(brand, {
      title: "This link does not work",
      body: `<p>It may have been cut off on its way, or its message never arrived.</p>
<p class="soft">Open it once more from the message, or copy all of it into the browser.</p>`,
    }),
  };
}

/** What came of a wish to leave. */
export type LeaveOutcome =
  | { readonly kind: "left" | "noted" | "came back"; readonly email: string }
  /** Nothing came of it. */
  | {
      readonly kind: "refused";
      readonly status: number;
      readonly text: string;
      readonly retryAfter?: number | undefined;
      /** It came of the form for taking leaving back, whose address is one step further down. */
      readonly below: boolean;
    };

const addressForm = (action: string, again: boolean) =>
  `<form method="post" action="${action}"><label class="field" for="email">Your email address</label>
<input type="email" id="email" name="email" autocomplete="email" required maxlength="511" placeholder="you@example.com"${again ? " autofocus" : ""}>
<button>Unsubscribe</button></form>`;

/** The page for leaving with the code of a link, and what came of it. Forms lead beside it, wherever the site's root is. */
export function unsubscribePage(
  ctx: Surroundings,
  code: string,
  page: { readonly tags: PreviewTags } | LeaveOutcome,
): RouteReply {
  const brand = brandOf(ctx.config);
  const answer = (title: string, body: string, status = 200, head = ""): RouteReply => ({
    status,
    headers: pageHeaders(brand),
    body: publicPage(brand, { title, body, head }),
  });
  if ("tags" in page)
    return answer(
      "Unsubscribe",
      `<p>${escaped(page.tags.description)}</p>
<p class="soft">Say which address got the mail, so that nobody unsubscribes you who only has the link.</p>
${addressForm("unsubscribe", false)}`,
      200,
      tagLines(brand.name, page.tags, atRoot(ctx, `/l/${code}`)),
    );
  if (page.kind === "refused") {
    const reply = answer(
      "Unsubscribe",
      `${said(page.text, false)}\n${addressForm(page.below ? "../unsubscribe" : "unsubscribe", true)}`,
      page.status,
    );
    return page.retryAfter === undefined
      ? reply
      : { ...reply, headers: { ...reply.headers, "retry-after": String(page.retryAfter) } };
  }
  const address = `<b>${escaped(page.email)}</b>`;
  const hidden = `<input type="hidden" name="email" value="${escaped(page.email)}">`;
  if (page.kind === "came back")
    return answer(
      "Good to have you back",
      `${said("You are subscribed again.")}\n<p>Mails go to ${address} as before.</p>
<form method="post" action="../unsubscribe">${hidden}<button class="quiet">Unsubscribe after all</button></form>`,
    );
  const undo = `<form method="post" action="unsubscribe/undo">${hidden}<button class="quiet">Undo: subscribe me again</button></form>`;
  const meansAll = ctx.config.get(emailSettings.userSuppressionScope) === "all";
  const left = meansAll
    ? `No more mails go to ${address}.`
    : `No more of these mails go to ${address}. Mails that you ask for yourself, such as sign-in codes, still arrive.`;
  return answer(
    "You are unsubscribed",
    `${said(page.kind === "left" ? "Done. It holds from now on." : "Noted. It holds within minutes.")}
<p>${left}</p>
${page.kind === "left" ? undo : ""}`,
  );
}
