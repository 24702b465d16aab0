import { connect } from "node:net";
import type { Clock } from "../../kernel/clock.ts";
import type { Config } from "../../kernel/config.ts";
import { settings as emailRoom } from "../../messaging/email/settings.ts";
import { brandOf, judgeTemplates } from "../../messaging/email_templates/service.ts";
import { settings as templateSettings } from "../../messaging/email_templates/settings.ts";
import { bareAddress } from "../../providers/email.ts";
import { emailIn } from "../../providers/open-providers.ts";
import { emailSettings } from "../../providers/settings.ts";
import type { Finding } from "./doctor.ts";

/** Seconds for a mail server to greet us. */
const PATIENCE = 5;
const LOCAL = /^(localhost|127(\.\d+){3}|\[::1\])$/;

/** Looks at everything that mails need: settings, templates, and whether each provider answers. */
export async function* examineEmail(config: Config, clock: Clock, userAgent: string): AsyncGenerator<Finding> {
  const real = config.get(emailSettings.provider);
  yield* examineSettings(config, real);
  yield* examineTemplates(config, real.length > 0);
  if (real.length === 0) {
    yield {
      state: "ok",
      what: "provider",
      text: "none: mails go to the sandbox, where `GET /sandbox/api/inbox` shows them",
    };
    return;
  }
  yield* examineProviders(config, clock, userAgent);
}

function* examineSettings(config: Config, real: readonly string[]): Generator<Finding> {
  const from = config.get(emailRoom.from);
  if (from !== undefined) yield { state: "ok", what: "sender", text: `${from}, of the domain ${domainOf(from)}` };
  else if (real.length === 0) yield { state: "ok", what: "sender", text: "not set, and the sandbox needs none" };
  else
    yield {
      state: "fail",
      what: "sender",
      text: "nobody: mails need a sender",
      fix: `set ${emailRoom.from.env} to Name <address> of a domain that ${real.join(" and ")} may send for`,
    };
  const url = new URL(config.get(emailRoom.publicUrl));
  const isLocal = LOCAL.test(url.hostname);
  if (real.length > 0 && (isLocal || url.protocol !== "https:"))
    yield {
      state: "fail",
      what: "links",
      text: `links for leaving lead to ${url.origin}, ${isLocal ? "which is this machine" : "which is not https"}`,
      fix: `set ${emailRoom.publicUrl.env} to the https address at which readers reach this installation`,
    };
  else yield { state: "ok", what: "links", text: `links for leaving lead to ${url.origin}` };
  if (real.includes("ses") && config.get(emailSettings.snsTopicArns).length === 0)
    yield {
      state: "warn",
      what: "receipts",
      text: "no topic may report on mails, so every receipt will be missing",
      fix: `create a topic for the configuration set, subscribe ${url.origin}/api/1/emails/sns-mail to it, and set ${emailSettings.snsTopicArns.env}`,
    };
  if (real.length > 0 && config.get(emailSettings.snsBaseUrl) !== undefined)
    yield {
      state: "fail",
      what: "receipts",
      text: "reports of a simulated topic are believed: whoever answers there can forge them",
      fix: `remove ${emailSettings.snsBaseUrl.env}`,
    };
  const only = config.get(emailSettings.deliverOnlyTo);
  if (only.length > 0) yield { state: "ok", what: "staging", text: `mails go to ${only.join(", ")} only` };
}

function* examineTemplates(config: Config, isReal: boolean): Generator<Finding> {
  const verdicts = judgeTemplates(brandOf(config));
  const faults = verdicts.flatMap((verdict) => verdict.faults);
  for (const text of faults) yield { state: "fail", what: "templates", text, fix: "mend the template or its example" };
  if (faults.length === 0) {
    const examples = verdicts.reduce((sum, verdict) => sum + verdict.examples, 0);
    yield { state: "ok", what: "templates", text: `${verdicts.length} templates render all ${examples} examples` };
  }
  const postal = config.get(templateSettings.postalAddress);
  const lists = verdicts.flatMap(({ warnings, slug }) => (warnings.length > 0 ? [slug] : []));
  if (postal === undefined)
    yield {
      state: isReal ? "fail" : "warn",
      what: "postal",
      text: "mails of lists have no postal address below them, which many countries require",
      fix: `set ${templateSettings.postalAddress.env}`,
    };
  else
    for (const { slug, warnings } of verdicts.filter((verdict) => lists.includes(verdict.slug)))
      for (const text of warnings)
        yield { state: "warn", what: "templates", text: `${slug}: ${text}`, fix: "shorten the template" };
}

async function* examineProviders(config: Config, clock: Clock, userAgent: string): AsyncGenerator<Finding> {
  for (const provider of await emailIn(config, { clock, userAgent })) {
    const { name } = provider;
    try {
      if (name === "smtp") yield await examineSmtp(config, clock);
      else {
        const quota = await provider.quota();
        if (quota === undefined)
          yield {
            state: "fail",
            what: name,
            text: "does not answer, or does not know us",
            fix: "check region, keys and network; the keys need ses:GetAccount and ses:SendEmail",
          };
        else if (!quota.sendingEnabled)
          yield { state: "fail", what: name, text: "sending is stopped", fix: "speak with the provider" };
        else
          yield {
            state: "ok",
            what: name,
            text: `takes ${quota.maxPerSecond} mails a second; ${quota.sent24h} of ${quota.max24h} were sent in 24 hours`,
          };
      }
    } finally {
      await provider.close();
    }
  }
}

/** Greets the server and says goodbye: no account, no mail. */
async function examineSmtp(config: Config, clock: Clock): Promise<Finding> {
  const host = config.get(emailSettings.smtpHost) ?? "";
  const port = config.get(emailSettings.smtpPort);
  const where = `${host}:${port}`;
  const socket = connect({ host, port });
  const answered = new AbortController();
  try {
    const greeting = await Promise.race([
      new Promise<string>((resolve, reject) => {
        socket.once("error", reject);
        // With TLS from the first byte nobody speaks before the handshake: a connection is all there is to see.
        if (port === 465) socket.once("connect", () => resolve("220 connected"));
        socket.once("data", (chunk: Buffer) => resolve(chunk.toString("latin1").trim()));
      }),
      clock.sleep(PATIENCE, answered.signal).then(() => "no greeting"),
    ]);
    if (greeting.startsWith("220")) return { state: "ok", what: "smtp", text: `${where} answers` };
    return {
      state: "fail",
      what: "smtp",
      text: `${where} says: ${greeting.slice(0, 80)}`,
      fix: "is it a mail server that takes mail from here?",
    };
  } catch (error) {
    return {
      state: "fail",
      what: "smtp",
      text: `${where}: ${error instanceof Error ? error.message : String(error)}`,
      fix: `check ${emailSettings.smtpHost.env} and ${emailSettings.smtpPort.env}, and whether a firewall is between`,
    };
  } finally {
    answered.abort();
    socket.destroy();
  }
}

const domainOf = (sender: string) => bareAddress(sender).slice(bareAddress(sender).lastIndexOf("@") + 1);
