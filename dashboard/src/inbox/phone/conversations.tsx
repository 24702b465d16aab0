import { Skeleton, UnstyledButton } from "@mantine/core";
import { IconUser } from "@tabler/icons-react";
import { Ago } from "../../parts/index.ts";
import { type Message, numberOf } from "../messages.ts";
import styles from "./phone.module.css";

interface ConversationsProps {
  readonly texts: readonly Message[] | undefined;
  readonly onOpen: (number: string) => void;
}

/** Everybody whom Carillon wrote to, or who wrote to it. */
export function Conversations({ texts, onOpen }: ConversationsProps) {
  const newest = new Map<string, Message>();
  for (const message of texts ?? []) if (!newest.has(numberOf(message))) newest.set(numberOf(message), message);
  return (
    <>
      <h2 className={styles.title}>Texts</h2>
      {texts === undefined && <Skeleton h={60} radius="lg" />}
      {texts !== undefined && newest.size === 0 && <p className={styles.nothing}>No texts so far.</p>}
      <ul className={styles.notices} aria-label="Conversations">
        {[...newest].map(([number, message]) => (
          <li key={number}>
            <UnstyledButton className={styles.notice} onClick={() => onOpen(number)}>
              <span className={styles.app} data-channel="person" aria-hidden>
                <IconUser size={17} />
              </span>
              <span className={styles.words}>
                <span className={styles.line}>
                  <strong>{number}</strong>
                  <span className={styles.ago}>
                    <Ago at={message.at} />
                  </span>
                </span>
                <span className={styles.text}>
                  {message.direction === "in" ? "You: " : ""}
                  {message.text}
                </span>
              </span>
            </UnstyledButton>
          </li>
        ))}
      </ul>
    </>
  );
}
