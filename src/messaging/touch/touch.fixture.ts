import { openRooms, type RoomsHouse } from "../../../test/harness/rooms.ts";
import { jobKeys } from "../../jobs/keys.ts";
import { contacts } from "../contacts/index.ts";
import { addEmails, addPhones, registerPushTokens } from "../contacts/service.ts";
import { email } from "../email/index.ts";
import { emailTemplates } from "../email_templates/index.ts";
import { links } from "../links/index.ts";
import { messages } from "../messages/index.ts";
import { push } from "../push/index.ts";
import { failureJob, successJob } from "../sms/callbacks.ts";
import { type SmsEntry, smsEntry } from "../sms/entries.ts";
import { sms } from "../sms/index.ts";
import { keys as smsKeys } from "../sms/keys.ts";
import { touch } from "./index.ts";

export const rooms = [contacts, sms, emailTemplates, email, push, links, messages, touch];

export interface TouchHouse extends RoomsHouse {
  /** Somebody with addresses; answers their access token. */
  reachable(
    sub: string,
    addresses: {
      readonly phones?: readonly string[];
      readonly emails?: readonly string[];
      readonly tokens?: readonly string[];
    },
  ): Promise<string>;
  /** A touch point whose messages say their own name. */
  point(slug: string, fields?: object): Promise<{ readonly uid: string }>;
  /** The texts that wait in the channel, taken out of it. */
  texts(): Promise<readonly SmsEntry[]>;
  /** Queues what the channel would after this text arrived, or failed for good or for now. */
  end(text: SmsEntry, how: "arrived" | "refused" | "failed"): Promise<void>;
  /** Names of the jobs that wait, as they are. */
  waiting(): Promise<readonly string[]>;
}

export async function openTouch(options: { readonly start?: number } = {}): Promise<TouchHouse> {
  const house = await openRooms({ rooms, start: 1_790_000_000, ...options });
  const { commands, topology } = house.base.redis;
  return {
    ...house,
    async reachable(sub, { phones = [], emails = [], tokens = [] }) {
      const token = await house.person(sub);
      const common = { userSub: sub, verified: true };
      await addPhones(
        house.ctx,
        phones.map((phoneNumber) => ({
          ...common,
          phoneNumber,
          receivesNotifications: true,
          cause: "verify" as const,
        })),
      );
      await addEmails(
        house.ctx,
        emails.map((address) => ({ ...common, email: address, cause: "identity" as const })),
      );
      await registerPushTokens(
        house.ctx,
        tokens.map((pushToken) => ({ userSub: sub, token: pushToken, platform: "ios" as const })),
      );
      return token;
    },
    async point(slug, fields = {}) {
      const text = { type: "string", example: "Ana" };
      const answer = await house.call("POST", "/api/1/admin/touch_points", {
        body: {
          event_slug: slug,
          event_schema: { type: "object", properties: { name: text, ss_reset: { type: "boolean", example: false } } },
          selection_strategy: "fixed",
          messages: {
            sms: [{ priority: 1, uid: "crl_tpsms_a", body_format: `${slug} {name}`, body_parameters: ["name"] }],
          },
          ...fields,
        },
      });
      if (answer.statusCode !== 201) throw new Error(answer.body);
      return answer.json();
    },
    async texts() {
      const raws = await commands.lrangeBuffer(topology.key(smsKeys.toSend()), 0, -1);
      await commands.del(topology.key(smsKeys.toSend()));
      return raws.map((raw) => smsEntry.decode(raw));
    },
    async end(text, how) {
      const now = house.ctx.clock.now();
      const resource = { sid: `SM${"0".repeat(32)}`, status: "sent", error_code: null, date_updated: null };
      const refused = how === "refused";
      const job =
        how === "arrived"
          ? successJob(text, { createdAt: now, succeededAt: now, resource }, now)
          : failureJob(
              text,
              {
                action: "send",
                identifier: refused ? "ApplicationErrorOther" : "ServerError",
                subidentifier: refused ? "21211" : "503",
                retryable: !refused,
                extra: null,
              },
              now,
            );
      await commands.rpush(topology.key(jobKeys.hot()), job);
    },
    async waiting() {
      const raws = await commands.lrange(topology.key(jobKeys.hot()), 0, -1);
      return raws.map((raw) => (JSON.parse(raw) as { name: string }).name);
    },
  };
}
