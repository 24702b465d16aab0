import type { Clock } from "../kernel/clock.ts";
import type { Log } from "../kernel/log.ts";
import type { EmailProvider } from "../providers/email.ts";
import { ExpoPush } from "../providers/expo.ts";
import type { PushProvider } from "../providers/push.ts";
import type { SmsProvider } from "../providers/sms.ts";
import { TwilioSms } from "../providers/twilio.ts";
import type { TwilioAccount } from "./twilio.ts";

/** What a client must know of a sandbox that may run in another process. */
export interface SandboxAddress {
  readonly url: string;
  readonly twilio: TwilioAccount;
  readonly expoAccessToken?: string;
}

export interface SandboxClients {
  readonly push: readonly PushProvider[];
  readonly sms: readonly SmsProvider[];
  readonly email: readonly EmailProvider[];
}

const TIMEOUT = 20;

/** The clients of the real providers, pointed at the sandbox: stand-ins for channels that have no provider yet. */
export async function sandboxClients(
  { url, twilio, expoAccessToken }: SandboxAddress,
  surroundings: { readonly clock: Clock; readonly log: Log; readonly userAgent: string },
): Promise<SandboxClients> {
  const { SesEmail } = await import("../providers/ses.ts");
  const common = { ...surroundings, baseUrl: url, timeout: TIMEOUT };
  return {
    push: [new ExpoPush({ ...common, accessToken: expoAccessToken })],
    sms: [new TwilioSms({ ...common, ...twilio, messagingServiceSid: `MG${twilio.accountSid.slice(2)}` })],
    email: [
      new SesEmail({
        ...common,
        region: "us-east-1",
        endpoint: url,
        credentials: { accessKeyId: "AKIASANDBOX", secretAccessKey: "sandbox" },
      }),
    ],
  };
}
