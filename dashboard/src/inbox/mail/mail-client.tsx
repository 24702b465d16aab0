import { Paper } from "@mantine/core";
import { IconMailOpened } from "@tabler/icons-react";
import { useState } from "react";
import { EmptyState, LoadingState } from "../../parts/index.ts";
import type { Message } from "../messages.ts";
import styles from "./mail.module.css";
import { MailList } from "./mail-list.tsx";
import { MailReader } from "./mail-reader.tsx";

interface MailClientProps {
  readonly messages: readonly Message[] | undefined;
  /** The list and a mail stand side by side. */
  readonly isWide: boolean;
}

/** The mailbox of everybody. */
export function MailClient({ messages, isWide }: MailClientProps) {
  const [chosen, setChosen] = useState<string>();
  const mails = messages?.filter(({ channel }) => channel === "email");
  const open = mails?.find(({ id }) => id === chosen) ?? (isWide ? mails?.[0] : undefined);
  return (
    <Paper component="section" aria-label="Mail" withBorder className={styles.client} data-wide={isWide}>
      {(isWide || !open) && (
        <div className={styles.list}>
          {mails === undefined ? (
            <LoadingState lines={6} height={40} />
          ) : mails.length === 0 ? (
            <EmptyState title="No mail so far" icon={<IconMailOpened size={22} />}>
              Send a mail, and it appears here at once.
            </EmptyState>
          ) : (
            <MailList mails={mails} open={open?.id} onOpen={setChosen} />
          )}
        </div>
      )}
      {open && <MailReader key={open.id} id={open.id} onClose={isWide ? undefined : () => setChosen(undefined)} />}
    </Paper>
  );
}
