import type { Clock } from "../kernel/clock.ts";
import { actionErrors } from "./actions.ts";
import type { Agenda } from "./agenda.ts";
import type { Inbox, MessageFilter, SandboxMessage } from "./inbox.ts";
import type { Knobs } from "./knobs.ts";
import type { TwilioSimulator } from "./twilio.ts";

/** A message as its receiver has it: with the codes of the links in it that lead to the house, in order. */
export interface ReceivedMessage {
  readonly message: SandboxMessage;
  readonly codes: readonly string[];
}

/** How somebody follows a link. */
export interface Following {
  /** The access token of somebody who is signed in. */
  readonly signedIn?: string | undefined;
  /** The visitor that their browser is known as. */
  readonly visitor?: string | undefined;
  /** Signs in afterwards, with this token, after so many seconds. */
  readonly thenLogin?: { readonly token: string; readonly after?: number } | undefined;
}

export interface Followed {
  /** What the house answered to the click. */
  readonly answered: number;
  readonly page: string | null;
  readonly clickUid: string | null;
  /** What it answered to the sign-in, if there was one. */
  readonly login: number | null;
}

interface Stage {
  readonly clock: Clock;
  readonly agenda: Agenda;
  readonly inbox: Inbox;
  readonly knobs: Knobs;
  readonly twilio: TwilioSimulator;
  readonly publicUrl: string;
}

const CODE_IN_LINK = /\/[la]\/([A-Za-z0-9_-]+)(?![A-Za-z0-9_-])/g;
const PERSON = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0";
const PREVIEW_ROBOT = "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)";

/** The codes of links in a text or mail, each once. Links to elsewhere have none. */
export function codesIn({ text, mail }: Pick<SandboxMessage, "text" | "mail">): readonly string[] {
  const written = [text, ...(mail?.links ?? [])].join("\n");
  return [...new Set([...written.matchAll(CODE_IN_LINK)].map(([, code]) => code!))];
}

/**
 * What people do with the messages that they got: read them, follow links, sign in afterwards, unsubscribe, answer by
 * text. They call the house over the wire as browsers and telephones do.
 */
export class Recipients {
  readonly #stage: Stage;

  constructor(stage: Stage) {
    this.#stage = stage;
    const { agenda, inbox, knobs, clock } = stage;
    inbox.watch((message) => {
      const { previewBots } = knobs.recipients;
      if (previewBots === 0 || message.direction === "in") return;
      for (const code of codesIn(message))
        agenda.at(clock.now(), `previews of ${message.id}`, () => this.preview(code, previewBots));
    });
  }

  /** What an address, number or device got, newest first. */
  received(to: string, filter: Omit<MessageFilter, "to"> = {}): readonly ReceivedMessage[] {
    return this.#stage.inbox
      .list({ ...filter, to })
      .filter((message) => message.direction === "out" && message.to.toLowerCase() === to.toLowerCase())
      .map((message) => ({ message, codes: codesIn(message) }));
  }

  /** Follows a link as a browser does: sees the preview, lands, and perhaps signs in then. */
  async click(code: string, { signedIn, visitor, thenLogin }: Following = {}): Promise<Followed> {
    const who = { "user-agent": PERSON, ...(visitor === undefined ? {} : { visitor }) };
    const as = (token: string | undefined) =>
      token === undefined ? who : { ...who, authorization: `Bearer ${token}` };
    await this.#call(`/l/${code}`, { headers: as(signedIn) });
    const landed = await this.#post("/api/1/notifications/complete", { code }, as(signedIn));
    const answer = landed.body as { page_identifier?: string; click_uid?: string };
    const followed = {
      answered: landed.status,
      page: answer.page_identifier ?? null,
      clickUid: answer.click_uid ?? null,
      login: null,
    };
    if (!thenLogin || !answer.click_uid) return followed;
    if (thenLogin.after) await this.#stage.clock.sleep(thenLogin.after);
    const login = { code, uid: answer.click_uid };
    const { status } = await this.#post("/api/1/notifications/post_login", login, as(thenLogin.token));
    return { ...followed, login: status };
  }

  /** Programs that fetch a link to show how it looks. They are nobody's click. */
  async preview(code: string, times: number): Promise<void> {
    for (let time = 0; time < times; time++)
      await this.#call(`/l/${code}`, { headers: { "user-agent": PREVIEW_ROBOT } });
  }

  /** Takes the unsubscribe link of the newest mail that has one, and sends its form. */
  async unsubscribe(email: string): Promise<{ answered: number | null }> {
    for (const { codes } of this.received(email, { channel: "email" })) {
      for (const code of codes) {
        const page = await this.#call(`/l/${code}/unsubscribe`, { headers: { "user-agent": PERSON } });
        if (page.status !== 200) continue;
        const form = { method: "POST", body: new URLSearchParams({ email }), headers: { "user-agent": PERSON } };
        const { status } = await this.#call(`/l/${code}/unsubscribe`, form);
        // A link that leads elsewhere proves nothing, and is refused.
        if (status !== 403) return { answered: status };
      }
    }
    throw actionErrors.sandbox_action_unfit({ message: `No mail to ${email} has a link to unsubscribe with.` });
  }

  /** Sends a text to the house, as their carrier would pass it on. */
  async text(phone: string, words: string): Promise<{ answered: number | null }> {
    return { answered: await this.#stage.twilio.inbound({ from: phone, body: words }) };
  }

  #post(path: string, body: object, headers: Readonly<Record<string, string>>) {
    const json = { ...headers, "content-type": "application/json" };
    return this.#call(path, { method: "POST", body: JSON.stringify(body), headers: json });
  }

  /** Only the house is called, wherever the link says that it leads. */
  async #call(path: string, init: RequestInit): Promise<{ readonly status: number; readonly body: unknown }> {
    const response = await fetch(new URL(path, `${this.#stage.publicUrl}/`), { redirect: "manual", ...init });
    const text = await response.text();
    const isJson = response.headers.get("content-type")?.includes("json");
    return { status: response.status, body: isJson ? JSON.parse(text) : text };
  }
}
