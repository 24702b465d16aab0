import { z } from "zod";
import { settings } from "../kernel/config.ts";

const WebAddress = z.string().refine((value) => /^https?:\/\//.test(value) && URL.canParse(value), {
  message: "must be an address such as https://api.example.com",
});
const webAddress = (name: string, plan: { default: string; doc: string }) => ({
  ...settings.text(name, plan),
  schema: WebAddress,
});
const optionalWebAddress = (name: string, plan: { doc: string }) => ({
  ...settings.optionalText(name, plan),
  schema: WebAddress.optional(),
});

/**
 * The providers of a channel, the preferred one first. `sandbox` names none: it asks for the simulated one, which also
 * stands in where nothing is set, and it stands alone because it reaches nobody.
 */
function preferred<const Names extends readonly [string, ...string[]]>(name: string, names: Names, what: string) {
  const list = settings.listOf<Names[number]>(name, z.enum(names), {
    default: [],
    doc: `Providers of ${what}, the preferred one first: ${names.join(", ")}. Unset or sandbox: the simulated one where it may run, else messages wait`,
  });
  const schema = z.preprocess(
    (value) => (typeof value === "string" && value.trim() === "sandbox" ? [] : value),
    list.schema.refine((named) => new Set(named).size === named.length, { message: "names a provider twice" }),
  );
  return { ...list, schema: schema as unknown as typeof list.schema };
}

const expoAccount = (name: string, account: string) => ({
  baseUrl: webAddress(`push.${name}.baseUrl`, {
    default: "https://exp.host",
    doc: `Where the push service answers that ${account} uses`,
  }),
  accessToken: settings.optionalText(`push.${name}.accessToken`, {
    doc: `Access token of ${account}; needed when the enhanced push security of the Expo project is on`,
    secret: true,
  }),
});

/** By the name that `push.provider` knows each by. */
export const expoAccounts = {
  expo: expoAccount("expo", "the Expo account"),
  expo_standby: expoAccount("expoStandby", "the second Expo account"),
};

export const pushSettings = {
  provider: preferred("push.provider", ["expo", "expo_standby"], "push notifications"),
  timeout: settings.seconds("push.timeout", {
    default: 20,
    min: 0.1,
    doc: "How long a request to a push provider may take",
  }),
};

const twilioAccount = (name: string, account: string) => ({
  baseUrl: webAddress(`sms.${name}.baseUrl`, {
    default: "https://api.twilio.com",
    doc: `Where the API answers that ${account} uses`,
  }),
  accountSid: settings.optionalText(`sms.${name}.accountSid`, { doc: `The SID of ${account}, AC and 32 digits` }),
  authToken: settings.optionalText(`sms.${name}.authToken`, {
    doc: `The secret of ${account}; also what its webhooks are signed with`,
    secret: true,
  }),
  messagingServiceSid: settings.optionalText(`sms.${name}.messagingServiceSid`, {
    doc: `The messaging service of ${account}, which picks the sender of each text, MG and 32 digits`,
  }),
});

/** By the name that `sms.provider` knows each by. */
export const twilioAccounts = {
  twilio: twilioAccount("twilio", "the Twilio account"),
  twilio_standby: twilioAccount("twilioStandby", "the second Twilio account"),
};

export const smsSettings = {
  provider: preferred("sms.provider", ["twilio", "twilio_standby"], "text messages"),
  timeout: settings.seconds("sms.timeout", {
    default: 20,
    min: 0.1,
    doc: "How long a request to a provider of text messages may take",
  }),
};

export const emailSettings = {
  provider: preferred("email.provider", ["ses", "smtp"], "email"),
  timeout: settings.seconds("email.timeout", {
    default: 10,
    min: 0.1,
    doc: "How long a request to SES, or one step of a conversation with an SMTP server, may take",
  }),
  deliverOnlyTo: settings.listOf("email.deliverOnlyTo", z.string(), {
    default: [],
    doc: "Addresses and domains that may be written to, all others being refused: for installations that only try things out. Unset = everybody",
  }),
  sesRegion: settings.text("email.ses.region", { default: "us-east-1", doc: "Region of Amazon SES" }),
  sesEndpoint: optionalWebAddress("email.ses.endpoint", {
    doc: "Where the API of SES answers; unset, Amazon's own address for the region",
  }),
  sesAccessKeyId: settings.optionalText("email.ses.accessKeyId", {
    doc: "Access key for SES; unset, the platform's own credentials are used",
  }),
  sesSecretAccessKey: settings.optionalText("email.ses.secretAccessKey", {
    doc: "Secret that belongs to the access key",
    secret: true,
  }),
  sesConfigurationSet: settings.optionalText("email.ses.configurationSet", {
    doc: "Configuration set that each mail names; it decides which topic hears of deliveries, bounces and complaints",
  }),
  snsTopicArns: settings.listOf("email.sns.topicArns", z.string().regex(/^arn:/, "must begin with arn:"), {
    default: [],
    doc: "Topics of Amazon SNS that may report on mails; unset, reports are refused",
  }),
  snsBaseUrl: optionalWebAddress("email.sns.baseUrl", {
    doc: "Where certificates and confirmations of a simulated topic live. Never set it with a real one: whoever answers there can forge reports",
  }),
  smtpHost: settings.optionalText("email.smtp.host", { doc: "Server that takes mail over SMTP" }),
  smtpPort: settings.integer("email.smtp.port", { default: 587, min: 1, max: 65_535, doc: "Port of the SMTP server" }),
  smtpSecure: settings.oneOf("email.smtp.secure", ["auto", "true", "false"], {
    default: "auto",
    doc: "Whether TLS begins with the first byte; auto: on port 465 only. Otherwise the connection is upgraded first, and must be unless the server is on this machine",
  }),
  smtpUser: settings.optionalText("email.smtp.user", { doc: "User name for the SMTP server" }),
  smtpPassword: settings.optionalText("email.smtp.password", { doc: "Password for the SMTP server", secret: true }),
  smtpDkimDomain: settings.optionalText("email.smtp.dkimDomain", {
    doc: "Domain in whose name mails over SMTP are signed; unset, the server signs or nobody does",
  }),
  smtpDkimSelector: settings.optionalText("email.smtp.dkimSelector", { doc: "Selector of the published DKIM key" }),
  smtpDkimPrivateKey: settings.optionalText("email.smtp.dkimPrivateKey", {
    doc: "Private DKIM key in PEM form",
    secret: true,
  }),
};

/** All settings of all providers of messages, for the list of every setting there is. */
export const providerSettings = [
  pushSettings,
  ...Object.values(expoAccounts),
  smsSettings,
  ...Object.values(twilioAccounts),
  emailSettings,
];
