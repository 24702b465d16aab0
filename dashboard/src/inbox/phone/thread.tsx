import { ActionIcon, Button, Group, TextInput, UnstyledButton } from "@mantine/core";
import { IconChevronLeft, IconDots, IconSend } from "@tabler/icons-react";
import { useEffect, useRef, useState } from "react";
import { LIVE, useChange, useRead } from "../../api/index.ts";
import { Ago, StateBadge } from "../../parts/index.ts";
import { LinkedText } from "../linked-text.tsx";
import type { Message } from "../messages.ts";
import styles from "./phone.module.css";

const QUICK = ["STOP", "START", "HELP"];

interface ThreadProps {
  readonly number: string;
  /** Newest first. */
  readonly texts: readonly Message[] | undefined;
  readonly onBack: () => void;
  readonly onLookBehind: (id: string) => void;
}

/** What one number got and answered. */
export function Thread({ number, texts = [], onBack, onLookBehind }: ThreadProps) {
  const sandbox = useRead("/api/1/sandbox", undefined, { every: LIVE });
  const isStopped = sandbox.data?.twilio.stopped.includes(number) ?? false;
  const end = useRef<HTMLLIElement>(null);
  const newest = texts[0]?.id;
  // biome-ignore lint/correctness/useExhaustiveDependencies: whatever comes is scrolled to
  useEffect(() => {
    // Not its answer: newer browsers give a promise, and an effect may only give what ends it.
    end.current?.scrollIntoView({ block: "nearest" });
  }, [newest]);
  return (
    <div className={styles.thread}>
      <div className={styles.head}>
        <ActionIcon variant="subtle" color="gray" aria-label="Back to all texts" onClick={onBack}>
          <IconChevronLeft size={20} />
        </ActionIcon>
        <h2 className={styles.title}>{number}</h2>
        {isStopped && <StateBadge state="suppressed" label="said STOP" />}
      </div>
      <ul className={styles.bubbles} aria-label={`Texts with ${number}`} aria-live="polite">
        {[...texts].reverse().map((message) => (
          <li key={message.id} className={styles.said} data-direction={message.direction}>
            <div className={styles.bubble}>
              <LinkedText text={message.text} />
            </div>
            <div className={styles.under}>
              <Ago at={message.at} />
              {message.direction === "out" && <StateBadge state={message.status} />}
              <UnstyledButton
                className={styles.more}
                aria-label="Behind the message"
                onClick={() => onLookBehind(message.id)}
              >
                <IconDots size={16} aria-hidden />
              </UnstyledButton>
            </div>
          </li>
        ))}
        <li ref={end} aria-hidden />
      </ul>
      <Composer number={number} />
    </div>
  );
}

function Composer({ number }: { readonly number: string }) {
  const [words, setWords] = useState("");
  const send = useChange("post", "/api/1/sandbox/sms/inbound", {
    done: ({ answered }) => (answered === null ? "Carillon did not answer" : `Sent; Carillon answered ${answered}`),
    refreshes: ["/api/1/sandbox"],
    onDone: () => setWords(""),
  });
  const say = (body: string) => send.mutate({ body: { from: number, body } });
  return (
    <form
      className={styles.composer}
      onSubmit={(event) => {
        event.preventDefault();
        if (words.trim() !== "") say(words.trim());
      }}
    >
      <Group gap={6} role="group" aria-label="Quick answers">
        {QUICK.map((word) => (
          <Button key={word} size="compact-xs" variant="default" radius="xl" onClick={() => say(word)}>
            {word}
          </Button>
        ))}
      </Group>
      <Group gap={6} wrap="nowrap">
        <TextInput
          flex={1}
          radius="xl"
          aria-label="Answer"
          placeholder="Answer"
          value={words}
          maxLength={1600}
          onChange={({ currentTarget }) => setWords(currentTarget.value)}
        />
        <ActionIcon type="submit" radius="xl" size="lg" aria-label="Send the answer" loading={send.isPending}>
          <IconSend size={17} />
        </ActionIcon>
      </Group>
    </form>
  );
}
