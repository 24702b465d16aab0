import { IconDeviceMobileMessage, IconMail, IconMessage2 } from "@tabler/icons-react";
import { SERIES } from "../app/theme.ts";
import styles from "./channel-mark.module.css";

export type ChannelName = "push" | "sms" | "email";

export const CHANNEL_NAMES: readonly ChannelName[] = ["push", "sms", "email"];
export const CHANNEL_LABELS: Readonly<Record<ChannelName, string>> = { push: "Push", sms: "SMS", email: "Email" };

const ICONS = { push: IconDeviceMobileMessage, sms: IconMessage2, email: IconMail } as const;

/** A channel with its sign and colour, everywhere the same. Contact methods say `phone` where touches say `sms`. */
export function ChannelMark({ channel }: { readonly channel: ChannelName | "phone" }) {
  const name = channel === "phone" ? "sms" : channel;
  const Icon = ICONS[name];
  return (
    <span className={styles.mark}>
      <Icon size={16} stroke={1.8} color={SERIES[name]} aria-hidden />
      {channel === "phone" ? "Phone" : CHANNEL_LABELS[name]}
    </span>
  );
}

/** Where a message goes, as people would say it: what makes one push token another stands inside its brackets. */
export const addressText = (address: string) => address.replace(/^Expo(?:nent)?PushToken\[(.*)\]$/, "device $1");

/** The sign of a channel alone, where there is no room for its name. */
export function ChannelSign({ channel }: { readonly channel: ChannelName }) {
  const Icon = ICONS[channel];
  return <Icon size={20} stroke={1.7} color={SERIES[channel]} role="img" aria-label={CHANNEL_LABELS[channel]} />;
}
