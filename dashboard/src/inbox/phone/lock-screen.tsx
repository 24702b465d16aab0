import { Skeleton, UnstyledButton } from "@mantine/core";
import { IconBell, IconMessage2 } from "@tabler/icons-react";
import { Ago, addressText, StateBadge } from "../../parts/index.ts";
import type { Message } from "../messages.ts";
import styles from "./phone.module.css";

const SHOWN = 60;
const time = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const day = new Intl.DateTimeFormat(undefined, { weekday: "long", day: "numeric", month: "long" });

interface LockScreenProps {
  readonly messages: readonly Message[] | undefined;
  readonly now: number;
  readonly onOpen: (message: Message) => void;
}

/** Pushes and texts in the order in which they came, the newest on top. */
export function LockScreen({ messages, now, onOpen }: LockScreenProps) {
  const date = new Date(now * 1000);
  const received = messages?.filter(({ direction }) => direction === "out").slice(0, SHOWN);
  return (
    <>
      <div className={styles.clock}>
        <span className={styles.day}>{day.format(date)}</span>
        <span className={styles.time}>{time.format(date)}</span>
      </div>
      {received === undefined && <Skeleton h={76} radius="lg" mb="xs" />}
      {received?.length === 0 && (
        <p className={styles.nothing}>Nothing arrived yet. Send a push or a text, and it appears here at once.</p>
      )}
      <ul className={styles.notices} aria-label="Notifications" aria-live="polite" aria-relevant="additions">
        {received?.map((message) => (
          <li key={message.id}>
            <UnstyledButton className={styles.notice} onClick={() => onOpen(message)}>
              <span className={styles.app} data-channel={message.channel} aria-hidden>
                {message.channel === "push" ? <IconBell size={17} /> : <IconMessage2 size={17} />}
              </span>
              <span className={styles.words}>
                <span className={styles.line}>
                  <strong>{message.channel === "push" ? (message.subject ?? "Notification") : message.to}</strong>
                  <span className={styles.ago}>
                    <Ago at={message.at} />
                  </span>
                </span>
                <span className={styles.text}>{message.text}</span>
                <span className={styles.line}>
                  <span className={styles.address}>
                    {message.channel === "push" ? addressText(message.to) : "Text"}
                  </span>
                  <StateBadge state={message.status} />
                </span>
              </span>
            </UnstyledButton>
          </li>
        ))}
      </ul>
    </>
  );
}
