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

/**
 * The clients of the real providers, pointed at the sandbox: stand-ins for channels that have no provider yet. The address
 * is asked for with every call, because a sandbox whose port is taken moves to another, and one in another process
 * comes and goes.
 */
export function sandboxClients(
  address: () => SandboxAddress,
  surroundings: { readonly clock: Clock; readonly log: Log; readonly userAgent: string },
): SandboxClients {
  const common = ({ url }: SandboxAddress) => ({ ...surroundings, baseUrl: url, timeout: TIMEOUT });
  const expo = following(address, (at) => new ExpoPush({ ...common(at), accessToken: at.expoAccessToken }));
  const twilio = following(
    address,
    (at) => new TwilioSms({ ...common(at), ...at.twilio, messagingServiceSid: `MG${at.twilio.accountSid.slice(2)}` }),
  );
  const ses = following(address, async (at) => {
    // Loaded with the first mail: the client is large.
    const { SesEmail } = await import("../providers/ses.ts");
    const credentials = { accessKeyId: "AKIASANDBOX", secretAccessKey: "sandbox" };
    return new SesEmail({ ...common(at), region: "us-east-1", endpoint: at.url, credentials });
  });
  return {
    push: [
      { name: "expo", send: (messages) => expo.now().send(messages), receipts: (ids) => expo.now().receipts(ids) },
    ],
    sms: [
      {
        name: "twilio",
        create: (message) => twilio.now().create(message),
        fetch: (sid) => twilio.now().fetch(sid),
        list: (query) => twilio.now().list(query),
      },
    ],
    email: [
      {
        name: "ses",
        hasReceipts: true,
        send: async (message) => (await ses.now()).send(message),
        quota: async (maxAge) => (await ses.now()).quota(maxAge),
        suppressions: {
          async *since(time) {
            yield* (await ses.now()).suppressions.since(time);
          },
          add: async (suppression) => (await ses.now()).suppressions.add(suppression),
          remove: async (email) => (await ses.now()).suppressions.remove(email),
        },
        reset: async () => (await ses.opened())?.reset(),
        close: async () => (await ses.opened())?.close(),
      },
    ],
  };
}

/** The client for where the sandbox is now: another one as soon as it has moved. */
function following<C>(address: () => SandboxAddress, open: (at: SandboxAddress) => C) {
  let current: { readonly url: string; readonly client: C } | undefined;
  return {
    now(): C {
      const at = address();
      if (current?.url !== at.url) current = { url: at.url, client: open(at) };
      return current.client;
    },
    opened: (): C | undefined => current?.client,
  };
}
