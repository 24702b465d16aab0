import { UnstyledButton } from "@mantine/core";
import { Ago, StateBadge } from "../../parts/index.ts";
import type { Message } from "../messages.ts";
import styles from "./mail.module.css";

interface MailListProps {
  readonly mails: readonly Message[];
  readonly open: string | undefined;
  readonly onOpen: (id: string) => void;
}

export function MailList({ mails, open, onOpen }: MailListProps) {
  return (
    <ul className={styles.mails} aria-label="Mails" aria-live="polite" aria-relevant="additions">
      {mails.map((mail) => (
        <li key={mail.id}>
          <UnstyledButton
            className={styles.mail}
            aria-current={mail.id === open ? "true" : undefined}
            onClick={() => onOpen(mail.id)}
          >
            <span className={styles.line}>
              <span className={styles.to}>{mail.to}</span>
              <span className={styles.ago}>
                <Ago at={mail.at} />
              </span>
            </span>
            <strong className={styles.subject}>{mail.subject ?? "(no subject)"}</strong>
            <span className={styles.line}>
              {mail.template !== null && <span className={styles.template}>{mail.template}</span>}
              <span className={styles.snippet}>{mail.text}</span>
              <StateBadge state={mail.status} />
            </span>
          </UnstyledButton>
        </li>
      ))}
    </ul>
  );
}
