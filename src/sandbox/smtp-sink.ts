import type { AddressInfo } from "node:net";
import { SMTPServer, type SMTPServerSession } from "smtp-server";
import type { Clock } from "../kernel/clock.ts";
import type { Agenda } from "./agenda.ts";
import { refusalOf, type SesError } from "./aws-errors.ts";
import { meetFate } from "./fates.ts";
import { isOut } from "./faults.ts";
import { Gauge } from "./gauge.ts";
import type { Inbox } from "./inbox.ts";
import type { Knobs } from "./knobs.ts";
import { readMail } from "./mail-reader.ts";
import { DAY, takeError } from "./ses.ts";
import { outcomeOf } from "./ses-notices.ts";

const LARGEST_MAIL = 40 * 1024 * 1024;

/** What an error of the mail service is in the language of SMTP. */
function replyTo(error: SesError): [number, string] | undefined {
  const refused = refusalOf(error);
  if (!refused) return undefined;
  const { status, name, says } = refused;
  if (status === 429 || /Throttling|LimitExceeded/.test(name)) return [454, `4.7.0 Throttling failure: ${says}`];
  if (status === 503) return [421, "4.3.2 Service is down"];
  if (status >= 500) return [451, "4.3.0 Temporary service failure"];
  if (status === 403) return [535, "5.7.8 Authentication credentials invalid"];
  return name === "MessageRejected" ? [554, "5.6.0 Message rejected"] : [554, `5.7.1 ${says}`];
}

/**
 * A mail server that keeps everything and forwards nothing. It obeys the same knobs and the same receivers as the mail
 * service, but reports nothing later: what it refuses, it refuses at once.
 */
export class SmtpSink {
  readonly #server: SMTPServer;

  private constructor(server: SMTPServer) {
    this.#server = server;
  }

  static async listen(plan: {
    host: string;
    port: number;
    clock: Clock;
    agenda: Agenda;
    knobs: Knobs;
    inbox: Inbox;
    random: () => number;
    credentials?: { user: string; password: string };
  }): Promise<SmtpSink> {
    const { clock, knobs, credentials } = plan;
    const second = new Gauge(clock, 1);
    const day = new Gauge(clock, DAY);
    const server = new SMTPServer({
      logger: false,
      banner: "Carillon sandbox",
      // There is nothing to hide on the loopback, and a certificate that nobody knows would only be in the way.
      disabledCommands: ["STARTTLS"],
      allowInsecureAuth: true,
      authOptional: credentials === undefined,
      disableReverseLookup: true,
      size: LARGEST_MAIL,
      closeTimeout: 1,
      onAuth: (auth, _session, done) => {
        const right =
          credentials === undefined || (auth.username === credentials.user && auth.password === credentials.password);
        done(right ? null : smtpError(535, "5.7.8 Authentication credentials invalid"), { user: auth.username });
      },
      onRcptTo: ({ address }, _session, done) => {
        const fate = meetFate(knobs.recipients, address)?.kind;
        if (fate === "transient") return done(smtpError(450, "4.2.1 The receiver cannot take mail right now"));
        const outcome = fate === "never" ? "silent" : outcomeOf(address, knobs.ses.rules);
        if (outcome === "bounce" || fate === "permanent")
          return done(smtpError(550, "5.1.1 The receiver does not exist"));
        if (outcome === "suppressionlist") return done(smtpError(550, "5.7.1 The receiver is on the suppression list"));
        return done();
      },
      onData: (stream, session, done) => {
        const chunks: Buffer[] = [];
        stream.on("data", (chunk: Buffer) => chunks.push(chunk));
        stream.on("end", () => {
          if (stream.sizeExceeded) return done(smtpError(552, "5.3.4 The mail is too large"));
          accept(Buffer.concat(chunks), session).then(
            (answer) => {
              if (answer === "cut") cut(session);
              else if (answer !== "silence") done(answer instanceof Error ? answer : null, answer as string);
            },
            () => done(smtpError(451, "4.3.0 The sandbox could not read the mail")),
          );
        });
      },
    });

    const accept = async (raw: Buffer, session: SMTPServerSession): Promise<Error | "cut" | "silence" | string> => {
      if (knobs.ses.latency_ms > 0) await plan.agenda.pause(knobs.ses.latency_ms / 1000);
      if (isOut(knobs.ses.outage, clock.now())) return smtpError(421, "4.3.2 Service is down");
      const error = takeError(knobs.ses, plan.random);
      if (error === "reset") return "cut";
      const refused = error && replyTo(error);
      if (refused) return smtpError(...refused);
      if (!second.admit(1, knobs.ses.max_per_second))
        return smtpError(454, "4.7.0 Throttling failure: Maximum sending rate exceeded.");
      if (!day.admit(1, knobs.ses.quota_24h))
        return smtpError(454, "4.7.0 Throttling failure: Daily message quota exceeded.");
      const mail = await readMail(raw);
      const id = mail.headers.find(({ name }) => name.toLowerCase() === "message-id")?.value.replaceAll(/[<>]/g, "");
      const from = session.envelope.mailFrom ? session.envelope.mailFrom.address : mail.from;
      for (const { address } of session.envelope.rcptTo)
        plan.inbox.add({
          channel: "email",
          direction: "out",
          provider: "smtp",
          provider_id: id ?? session.id,
          to: address,
          from,
          subject: mail.subject,
          text: mail.text ?? "",
          moments: [{ status: "accepted", at: clock.now() }],
          fields: {},
          raw,
          mail,
        });
      return error === "timeout-after-accept" ? "silence" : "2.0.0 kept in the sandbox";
    };
    const cut = (session: SMTPServerSession) => {
      for (const connection of server.connections) if (connection.session.id === session.id) connection.close();
    };
    // A client that goes away in the middle is no news; without a listener it would end the process.
    server.on("error", () => {});
    await new Promise<void>((resolve, reject) => {
      server.server.once("error", reject);
      server.listen(plan.port, plan.host, () => {
        server.server.off("error", reject);
        resolve();
      });
    });
    return new SmtpSink(server);
  }

  get url(): string {
    const { address, port, family } = this.#server.server.address() as AddressInfo;
    return `smtp://${family === "IPv6" ? `[${address}]` : address}:${port}`;
  }

  close(): Promise<void> {
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }
}

function smtpError(responseCode: number, message: string): Error {
  return Object.assign(new Error(message), { responseCode });
}
