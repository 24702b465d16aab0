import { UnstyledButton } from "@mantine/core";
import { IconBell, IconMessages } from "@tabler/icons-react";
import { useState } from "react";
import { useNow } from "../../app/clock.ts";
import { MessageSheet } from "../message-sheet.tsx";
import { type Message, numberOf } from "../messages.ts";
import { Conversations } from "./conversations.tsx";
import { LockScreen } from "./lock-screen.tsx";
import styles from "./phone.module.css";
import { Thread } from "./thread.tsx";

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });

type Screen =
  | { readonly name: "lock" }
  | { readonly name: "texts" }
  | { readonly name: "thread"; readonly number: string };

/** One phone for all numbers and devices: what arrives is on its first screen at once, and texts can be answered. */
export function Phone({ messages }: { readonly messages: readonly Message[] | undefined }) {
  const [screen, setScreen] = useState<Screen>({ name: "lock" });
  const [behind, setBehind] = useState<string>();
  const now = useNow(10);
  const arrived = messages?.filter(({ channel }) => channel !== "email");
  const texts = arrived?.filter(({ channel }) => channel === "sms");
  const open = (message: Message) =>
    message.channel === "sms" ? setScreen({ name: "thread", number: numberOf(message) }) : setBehind(message.id);
  return (
    <section aria-label="Phone" className={styles.phone}>
      <div className={styles.status} aria-hidden>
        <span>{clock.format(new Date(now * 1000))}</span>
        <span>Sandbox</span>
      </div>
      <div className={styles.screen} data-screen={screen.name}>
        {screen.name === "lock" && <LockScreen messages={arrived} now={now} onOpen={open} />}
        {screen.name === "texts" && (
          <Conversations texts={texts} onOpen={(number) => setScreen({ name: "thread", number })} />
        )}
        {screen.name === "thread" && (
          <Thread
            number={screen.number}
            texts={texts?.filter((message) => numberOf(message) === screen.number)}
            onBack={() => setScreen({ name: "texts" })}
            onLookBehind={setBehind}
          />
        )}
      </div>
      <nav className={styles.bar} aria-label="Screens of the phone">
        <UnstyledButton
          className={styles.place}
          aria-current={screen.name === "lock" ? "page" : undefined}
          onClick={() => setScreen({ name: "lock" })}
        >
          <IconBell size={20} aria-hidden />
          Notifications
        </UnstyledButton>
        <UnstyledButton
          className={styles.place}
          aria-current={screen.name === "lock" ? undefined : "page"}
          onClick={() => setScreen({ name: "texts" })}
        >
          <IconMessages size={20} aria-hidden />
          Texts
        </UnstyledButton>
      </nav>
      <MessageSheet id={behind} onClose={() => setBehind(undefined)} />
    </section>
  );
}
