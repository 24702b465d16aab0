import { escaped, publicPage, said } from "../../kernel/page.ts";
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

/** The page of a link that works: what is now, and what can be changed about it. */
export function choicePage(facts: PageFacts, happened?: Happened): string {
  const { held } = facts;
  const beyondChoice = held !== undefined && held !== "unknown" && held.reason !== "User";
  if (beyondChoice && happened === undefined)
    return publicPage(facts.brand, {
      title: "We do not write to this address",
      body: `<p>No mails go to <b>${escaped(facts.email)}</b> at present, because earlier ones came back or were not wanted.</p>
<p class="soft">If that should change, please write to whoever sends you these mails.</p>`,
    });
  const everything = held !== undefined && held !== "unknown" && held.lists === undefined;
  const words = wordsOf(facts, happened, everything);
  return publicPage(facts.brand, {
    title: words.title,
    body: `${words.done === undefined ? "" : said(words.done)}
<p>${words.text}</p>
${everything ? undoForm(facts) : leaveForm(facts, happened === undefined)}
${held === "unknown" || facts.lists.length < 2 || beyondChoice ? "" : `<hr>\n${choiceForm(facts)}`}`,
  });
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
      `<label class="choice"><input type="checkbox" name="list" value="${escaped(slug)}"${left.includes(slug) ? "" : " checked"}><span><strong>${escaped(title)}</strong><span class="soft">${escaped(doc)}</span></span></label>`,
  );
  return `<form method="post" action="${escaped(path)}/preferences"><input type="hidden" name="choose" value="lists">
<fieldset><legend>Or choose what you get</legend>
${boxes.join("\n")}
</fieldset>
<button class="quiet">Save my choice</button></form>`;
}

/** A page that only says something: a link that means nothing, too many tries, a wish that could not be kept. */
export function wordsPage(brand: Brand, title: string, text: string): string {
  return publicPage(brand, { title, body: `<p>${escaped(text)}</p>` });
}
