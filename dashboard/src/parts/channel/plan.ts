import { SERIES } from "../../app/theme.ts";

/** What the pages of the three channels differ in, as far as panels that they share must know it. */
export interface ChannelPlan {
  readonly name: "push" | "sms" | "email";
  /** What one of its messages is called, and several. */
  readonly message: string;
  readonly messages: string;
  /** How the names of its keys begin; what is set aside stands under the name of its queue. */
  readonly keys: string;
  /** How the names of its alerts begin. */
  readonly alerts: readonly string[];
  readonly color: string;
}

export const PUSH: ChannelPlan = {
  name: "push",
  message: "notification",
  messages: "notifications",
  keys: "push:",
  alerts: ["push:"],
  color: SERIES.push,
};

export const SMS: ChannelPlan = {
  name: "sms",
  message: "text",
  messages: "texts",
  keys: "sms:",
  alerts: ["sms:"],
  color: SERIES.sms,
};

export const EMAIL: ChannelPlan = {
  name: "email",
  message: "mail",
  messages: "mails",
  keys: "email:",
  alerts: ["email:", "emails:"],
  color: SERIES.email,
};
