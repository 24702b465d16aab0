import type { Config, Setting } from "../kernel/config.ts";
import { kernelErrors } from "../kernel/errors.ts";
import { EmailChannel, PushChannel, SmsChannel } from "./channels.ts";
import { deliverOnlyTo, type EmailProvider } from "./email.ts";
import { ExpoPush } from "./expo.ts";
import type { Providers } from "./index.ts";
import { openObjectStore } from "./open-object-store.ts";
import type { ChainContext } from "./provider-chain.ts";
import type { PushProvider } from "./push.ts";
import { emailSettings, expoAccounts, pushSettings, smsSettings, twilioAccounts } from "./settings.ts";
import type { SmsProvider } from "./sms.ts";
import { TwilioSms } from "./twilio.ts";

export interface ProviderSurroundings extends ChainContext {
  readonly dataDirectory: string;
  /** How we name ourselves to providers: `carillon/<version>`. */
  readonly userAgent: string;
}

/** What to use for channels that the settings name no provider for. */
export interface StandIns {
  readonly push?: readonly PushProvider[];
  readonly sms?: readonly SmsProvider[];
  readonly email?: readonly EmailProvider[];
}

export interface OpenedProviders extends Providers {
  close(): Promise<void>;
}

/** The third parties that the settings name. Raises `invalid_settings` when one of them lacks what it needs. */
export async function openProviders(
  config: Config,
  surroundings: ProviderSurroundings,
  standIns: StandIns = {},
): Promise<OpenedProviders> {
  const [push, sms, email] = [
    pushIn(config, surroundings),
    smsIn(config, surroundings),
    await emailIn(config, surroundings),
  ];
  const channels = {
    push: new PushChannel(surroundings, orElse(push, standIns.push)),
    sms: new SmsChannel(surroundings, orElse(sms, standIns.sms)),
    email: new EmailChannel(surroundings, orElse(email, standIns.email)),
  };
  const objectStore = await openObjectStore(config, surroundings);
  return { objectStore, ...channels, close: () => channels.email.close() };
}

const orElse = <P>(configured: readonly P[], standIns: readonly P[] = []) =>
  configured.length > 0 ? configured : standIns;

function pushIn(config: Config, { clock, log, userAgent }: ProviderSurroundings): PushProvider[] {
  return config.get(pushSettings.provider).map((name) => {
    const account = expoAccounts[name];
    return new ExpoPush({
      name,
      baseUrl: config.get(account.baseUrl),
      accessToken: config.get(account.accessToken),
      timeout: config.get(pushSettings.timeout),
      userAgent,
      clock,
      log,
    });
  });
}

function smsIn(config: Config, { clock, log, userAgent }: ProviderSurroundings): SmsProvider[] {
  return config.get(smsSettings.provider).map((name) => {
    const account = twilioAccounts[name];
    return new TwilioSms({
      name,
      baseUrl: config.get(account.baseUrl),
      accountSid: required(config, account.accountSid, name),
      authToken: required(config, account.authToken, name),
      messagingServiceSid: required(config, account.messagingServiceSid, name),
      timeout: config.get(smsSettings.timeout),
      userAgent,
      clock,
      log,
    });
  });
}

/** The providers of email alone, in their order: for whoever wants to look at each of them. */
export async function emailIn(
  config: Config,
  surroundings: Pick<ProviderSurroundings, "clock" | "userAgent">,
): Promise<EmailProvider[]> {
  const named = config.get(emailSettings.provider);
  const opened = await Promise.all(
    named.map((name) => (name === "ses" ? openSes(config, surroundings) : openSmtp(config))),
  );
  const allowed = config.get(emailSettings.deliverOnlyTo);
  return allowed.length === 0 ? opened : opened.map((provider) => deliverOnlyTo(provider, allowed));
}

async function openSes(
  config: Config,
  { clock, userAgent }: Pick<ProviderSurroundings, "clock" | "userAgent">,
): Promise<EmailProvider> {
  const accessKeyId = config.get(emailSettings.sesAccessKeyId);
  // The clients are large; installations that do not use one never load it.
  const { SesEmail } = await import("./ses.ts");
  return new SesEmail({
    region: config.get(emailSettings.sesRegion),
    endpoint: config.get(emailSettings.sesEndpoint),
    credentials: accessKeyId
      ? { accessKeyId, secretAccessKey: required(config, emailSettings.sesSecretAccessKey, "an access key of SES") }
      : undefined,
    configurationSet: config.get(emailSettings.sesConfigurationSet),
    timeout: config.get(emailSettings.timeout),
    userAgent,
    clock,
  });
}

async function openSmtp(config: Config): Promise<EmailProvider> {
  const port = config.get(emailSettings.smtpPort);
  const secure = config.get(emailSettings.smtpSecure);
  const user = config.get(emailSettings.smtpUser);
  const domainName = config.get(emailSettings.smtpDkimDomain);
  const { signsOneClick, SmtpEmail } = await import("./smtp.ts");
  const dkim = domainName
    ? {
        domainName,
        keySelector: required(config, emailSettings.smtpDkimSelector, "a DKIM domain"),
        privateKey: required(config, emailSettings.smtpDkimPrivateKey, "a DKIM domain"),
      }
    : undefined;
  if (dkim && !(await signsOneClick(dkim)))
    throw kernelErrors.invalid_settings({
      message: `The configuration is not valid:\n  ${emailSettings.smtpDkimPrivateKey.env} signs no mail. It must be a private RSA key in PEM form, line breaks included`,
    });
  return new SmtpEmail({
    host: required(config, emailSettings.smtpHost, "smtp"),
    port,
    secure: secure === "auto" ? port === 465 : secure === "true",
    auth: user ? { user, pass: required(config, emailSettings.smtpPassword, "a user of SMTP") } : undefined,
    dkim,
    timeout: config.get(emailSettings.timeout),
  });
}

function required(config: Config, setting: Setting<string | undefined>, by: string): string {
  const value = config.get(setting);
  if (value) return value;
  throw kernelErrors.invalid_settings({
    message: `The configuration is not valid:\n  ${setting.env} is missing; ${by} needs it. It is: ${setting.doc}`,
  });
}
