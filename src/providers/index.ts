import type { EmailChannel, PushChannel, SmsChannel } from "./channels.ts";
import type { ObjectStore } from "./object-store.ts";

/** The third parties that this installation speaks to, as `ctx.providers`. */
export interface Providers {
  readonly objectStore: ObjectStore;
  readonly push: PushChannel;
  readonly sms: SmsChannel;
  readonly email: EmailChannel;
}
