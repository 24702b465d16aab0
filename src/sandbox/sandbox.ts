import type { Clock } from "../kernel/clock.ts";
import type { Log } from "../kernel/log.ts";
import { type MessageAction, perform } from "./actions.ts";
import { Agenda } from "./agenda.ts";
import { ExchangeServer } from "./exchange.ts";
import { ExpoSimulator } from "./expo.ts";
import { Inbox, type SandboxMessage } from "./inbox.ts";
import { Knobs } from "./knobs.ts";
import { isLoopback, sandboxErrors } from "./loopback.ts";
import { Recipients } from "./recipients.ts";
import { seededRandom } from "./seeded-random.ts";
import { SesSimulator } from "./ses.ts";
import { openShelf } from "./shelf.ts";
import { SmtpSink } from "./smtp-sink.ts";
import { SnsTopic, type Subscribing } from "./sns.ts";
import { type TwilioAccount, TwilioSimulator } from "./twilio.ts";

export interface SandboxSecrets {
  /** Without it Expo asks for no token. */
  readonly expoAccessToken?: string;
  readonly twilio?: TwilioAccount;
  /** Without them the mail server takes anybody. */
  readonly smtp?: { readonly user: string; readonly password: string };
}

export interface SandboxOptions {
  readonly clock: Clock;
  readonly log: Log;
  /** An address of this machine alone. */
  readonly host?: string;
  /** 0 takes any free one. */
  readonly port?: number;
  readonly smtpPort?: number;
  /** Where the house answers: webhooks are posted below it. `moveHouse` changes it. */
  readonly publicUrl: string;
  /** Texts that name no address for their status are reported to the house, as a messaging service can be told to. */
  readonly reportsTexts?: boolean;
  readonly secrets?: SandboxSecrets;
  /** The same seed and the same requests give the same ids and the same faults. */
  readonly seed?: number;
  readonly subscribing?: Subscribing;
  /** How many messages the inbox keeps. */
  readonly keep?: number;
  /** Where the inbox lies, to outlive the process; without it, in memory only. */
  readonly folder?: string;
}

export const SANDBOX_TWILIO: TwilioAccount = {
  accountSid: `AC${"5a".repeat(16)}`,
  authToken: "sandbox-auth-token",
};

/**
 * Expo, Twilio, Amazon's mail service with its notifications, and a mail server, on this machine alone, speaking the real
 * protocols. Real clients are pointed at `url` and `smtpUrl` and cannot tell the difference. What they send ends in the
 * inbox; the knobs decide what goes wrong.
 *
 * Life: started (listening; the house's webhook is asked to confirm its subscription) -> closed. With a folder the inbox
 * outlives the process, and with it what can be looked up: receipts, texts, who said STOP. Callbacks and notifications that
 * were planned, the account's suppression list and the knobs go with the process, and the house finds out as it would
 * with a provider that forgot.
 */
export class Sandbox {
  readonly url: string;
  readonly smtpUrl: string;
  readonly expo: ExpoSimulator;
  readonly twilio: TwilioSimulator;
  readonly ses: SesSimulator;
  readonly inbox: Inbox;
  readonly knobs: Knobs;
  /** The people at the other end. */
  readonly recipients: Recipients;
  readonly #house: { url: string };
  readonly #agenda: Agenda;
  readonly #closing: () => Promise<void>;

  private constructor(
    parts: Pick<Sandbox, "url" | "smtpUrl" | "expo" | "twilio" | "ses" | "inbox" | "knobs">,
    house: { url: string },
    later: { readonly clock: Clock; readonly agenda: Agenda },
    closing: () => Promise<void>,
  ) {
    this.url = parts.url;
    this.smtpUrl = parts.smtpUrl;
    this.#house = house;
    this.#agenda = later.agenda;
    this.expo = parts.expo;
    this.twilio = parts.twilio;
    this.ses = parts.ses;
    this.inbox = parts.inbox;
    this.knobs = parts.knobs;
    const { inbox, knobs, twilio } = parts;
    this.recipients = new Recipients({
      ...later,
      inbox,
      knobs,
      twilio,
      get publicUrl() {
        return house.url;
      },
    });
    this.#closing = closing;
  }

  static async start(options: SandboxOptions): Promise<Sandbox> {
    const { clock, log, host = "127.0.0.1", secrets = {}, seed = 1, subscribing = "at start" } = options;
    if (!isLoopback(host))
      throw sandboxErrors.sandbox_must_be_local({ message: `The sandbox cannot listen on ${host}.` });
    const house = { url: bare(options.publicUrl) };
    const agenda = new Agenda(clock, log);
    const knobs = new Knobs();
    const shelf = options.folder === undefined ? undefined : openShelf(options.folder);
    const inbox = new Inbox(clock, options.keep, shelf);
    // Each part draws from a sequence of its own, so that traffic of one does not change the faults of another.
    const parts = (index: number) => ({ clock, agenda, knobs, inbox, random: seededRandom(seed * 31 + index) });
    const address = { url: "" };
    const topic = new SnsTopic({
      ...parts(1),
      ownUrl: () => address.url,
      endpoint: () => `${house.url}/api/1/emails/sns-mail`,
      subscribing,
    });
    const expo = new ExpoSimulator({ ...parts(2), accessToken: secrets.expoAccessToken });
    const twilio = new TwilioSimulator({
      ...parts(3),
      account: secrets.twilio ?? SANDBOX_TWILIO,
      inboundUrl: () => `${house.url}/api/1/sms/inbound_webhook`,
      statusUrl: () => (options.reportsTexts ? `${house.url}/api/1/sms/webhook` : undefined),
    });
    const ses = new SesSimulator({ ...parts(4), topic });
    const answering = [expo, twilio, ses].map((part) => part.answer.bind(part));
    const undo: (() => Promise<void> | undefined)[] = [() => shelf?.close()];
    try {
      const server = await ExchangeServer.listen({ host, port: options.port ?? 0, log, answering });
      undo.push(() => server.close());
      const smtp = await SmtpSink.listen({
        ...parts(5),
        host,
        port: options.smtpPort ?? 0,
        credentials: secrets.smtp,
      });
      address.url = server.url;
      if (subscribing === "at start") agenda.at(clock.now(), "sns subscription", () => topic.subscribe());
      const closing = async () => {
        await Promise.all([agenda.close(), server.close(), smtp.close()]);
        await shelf?.close();
      };
      const { url } = server;
      return new Sandbox(
        { url, smtpUrl: smtp.url, expo, twilio, ses, inbox, knobs },
        house,
        { clock, agenda },
        closing,
      );
    } catch (error) {
      for (const step of undo.reverse()) await step();
      throw error;
    }
  }

  /** Whether a callback or notification is under way right now. */
  get isAtWork(): boolean {
    return this.#agenda.atWork > 0;
  }

  get publicUrl(): string {
    return this.#house.url;
  }

  /** The house answers elsewhere from now on: it is only known once it listens. */
  moveHouse(publicUrl: string): void {
    this.#house.url = bare(publicUrl);
  }

  /** Lets something happen to a message that was sent. */
  act(message: SandboxMessage, action: MessageAction): Promise<{ answered: number | null }> {
    return perform(this, message, action);
  }

  close(): Promise<void> {
    return this.#closing();
  }
}

const bare = (url: string) => url.replace(/\/+$/, "");
