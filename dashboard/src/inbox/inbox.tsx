import {
  ActionIcon,
  Anchor,
  Box,
  Group,
  SegmentedControl,
  Text,
  TextInput,
  Title,
  Tooltip,
  useComputedColorScheme,
  useMantineColorScheme,
} from "@mantine/core";
import { useDebouncedValue, useHash, useMediaQuery } from "@mantine/hooks";
import { IconMoon, IconSearch, IconSun, IconTrash } from "@tabler/icons-react";
import { useState } from "react";
import { useChange } from "../api/index.ts";
import { Bell } from "../app/brand.tsx";
import { ConfirmButton, ErrorState, LiveIndicator } from "../parts/index.ts";
import { Faults } from "./faults/faults.tsx";
import styles from "./inbox.module.css";
import { MailClient } from "./mail/mail-client.tsx";
import { useArrivals, useMessages } from "./messages.ts";
import { Phone } from "./phone/phone.tsx";

const VIEWS = { phone: "Phone", mail: "Mail", faults: "Faults" } as const;
type View = keyof typeof VIEWS;

/** The other end of every channel: a phone and a mail program that got what was sent, and what may go wrong on the way. */
export function Inbox() {
  const [hash, setHash] = useHash({ getInitialValueInEffect: false });
  const isWide = useMediaQuery("(min-width: 72em)", false, { getInitialValueInEffect: false });
  const [written, setWritten] = useState("");
  const [to] = useDebouncedValue(written.trim(), 200);
  const messages = useMessages(to);
  useArrivals(messages.data);
  const asked = hash.replace(/^#/, "");
  const view: View = asked in VIEWS ? (asked as View) : "phone";
  const isShown = (wanted: View) => view === wanted || (isWide && view !== "faults" && wanted !== "faults");
  const choices: readonly { readonly value: View; readonly label: string }[] = isWide
    ? [
        { value: "phone", label: "Inbox" },
        { value: "faults", label: "Faults" },
      ]
    : Object.entries(VIEWS).map(([value, label]) => ({ value: value as View, label }));
  const empty = useChange("delete", "/api/1/sandbox/messages", {
    done: "The inbox is empty",
    refreshes: ["/api/1/sandbox/messages"],
  });
  return (
    <div className={styles.page}>
      <header className={styles.header}>
        <Group gap="sm" wrap="nowrap" className={styles.brand}>
          <Bell size={32} />
          <div>
            <Title order={1} size="h4">
              Sandbox inbox
            </Title>
            <Text size="xs" c="dimmed">
              What the simulated providers were given; nobody was reached.{" "}
              <Anchor href="/admin" size="xs" underline="always">
                To the dashboard
              </Anchor>
            </Text>
          </div>
        </Group>
        <SegmentedControl
          aria-label="What to see"
          value={isWide && view === "mail" ? "phone" : view}
          onChange={(value) => setHash(value)}
          data={[...choices]}
        />
        <Group gap="xs" className={styles.tools}>
          <TextInput
            aria-label="Only to addresses with"
            placeholder="Whose? Part of an address"
            leftSection={<IconSearch size={16} aria-hidden />}
            value={written}
            onChange={({ currentTarget }) => setWritten(currentTarget.value)}
            className={styles.search}
            type="search"
          />
          <ConfirmButton
            question="Every message is taken out of the inbox. What Carillon knows of them stays."
            confirm="Empty it"
            leftSection={<IconTrash size={14} aria-hidden />}
            loading={empty.isPending}
            onConfirm={() => empty.mutate({})}
          >
            Empty
          </ConfirmButton>
          <ColorSchemeButton />
          <LiveIndicator of={[messages]} />
        </Group>
      </header>
      <main id="content" className={styles.main} data-wide={isWide && view !== "faults"}>
        {messages.error && !messages.data && (
          <Box p="md">
            <ErrorState error={messages.error} retry={() => void messages.refetch()} />
          </Box>
        )}
        {isShown("phone") && <Phone messages={messages.data?.items} />}
        {isShown("mail") && <MailClient messages={messages.data?.items} isWide={isWide} />}
        {isShown("faults") && <Faults />}
      </main>
    </div>
  );
}

function ColorSchemeButton() {
  const { setColorScheme } = useMantineColorScheme();
  const isDark = useComputedColorScheme("light") === "dark";
  const label = isDark ? "Light colours" : "Dark colours";
  return (
    <Tooltip label={label}>
      <ActionIcon
        variant="subtle"
        color="gray"
        size="lg"
        aria-label={label}
        onClick={() => setColorScheme(isDark ? "light" : "dark")}
      >
        {isDark ? <IconSun size={19} /> : <IconMoon size={19} />}
      </ActionIcon>
    </Tooltip>
  );
}
