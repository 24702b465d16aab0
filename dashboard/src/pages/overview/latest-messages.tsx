import { Anchor, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { LIVE, useRead } from "../../api/index.ts";
import {
  addressText,
  type ChannelName,
  ChannelSign,
  EmptyState,
  ErrorState,
  LoadingState,
  nameOf,
  Panel,
  Time,
} from "../../parts/index.ts";
import styles from "./latest-messages.module.css";

const SHOWN = 6;

interface Latest {
  readonly key: string;
  readonly channel: ChannelName;
  readonly words: ReactNode;
  readonly whom: string;
  readonly at: number;
}

/** What went out just now: the words themselves where simulated providers keep them, else what it was about. */
export function LatestMessages({ isSimulated }: { readonly isSimulated: boolean }) {
  const query = { limit: SHOWN };
  const sandbox = useRead("/api/1/sandbox/messages", { query }, { every: LIVE, enabled: isSimulated });
  const touches = useRead("/api/1/admin/touches", { query }, { every: LIVE, enabled: !isSimulated });
  const read = isSimulated ? sandbox : touches;
  const rows: readonly Latest[] | undefined = isSimulated
    ? sandbox.data?.items.map(({ id, channel, direction, subject, text, to, from, at }) => ({
        key: id,
        channel,
        words: subject ? <b>{subject}</b> : text,
        whom: direction === "in" ? `from ${from ?? "somebody"}` : `to ${addressText(to)}`,
        at,
      }))
    : touches.data?.items.map(({ uid, channel, event_slug, user_sub, destination, created_at, ...named }) => ({
        key: `${uid} ${destination}`,
        channel,
        words: (
          <Link to="/touches/$uid" params={{ uid }} className={styles.about}>
            {event_slug}
          </Link>
        ),
        whom: `to ${nameOf(named) ?? user_sub}`,
        at: created_at,
      }));
  return (
    <Panel
      title="Just now"
      description={isSimulated ? "What arrived last" : "What people were told last"}
      h="100%"
      actions={
        isSimulated ? (
          <Anchor href="/sandbox" size="sm">
            Open the inbox
          </Anchor>
        ) : (
          <Anchor component={Link} to="/touches" size="sm">
            All touches
          </Anchor>
        )
      }
    >
      {!rows && read.error && <ErrorState error={read.error} retry={() => void read.refetch()} />}
      {!rows && !read.error && <LoadingState lines={SHOWN} height={34} />}
      {rows?.length === 0 && <EmptyState title="Nothing was sent yet">Messages appear here as they go out.</EmptyState>}
      <ul className={styles.list}>
        {rows?.map(({ key, channel, words, whom, at }) => (
          <li key={key} className={styles.message}>
            <ChannelSign channel={channel} />
            <div className={styles.what}>
              <Text size="sm" lineClamp={1} component="div">
                {words}
              </Text>
              <Text size="xs" c="dimmed" lineClamp={1} component="div">
                {whom}
              </Text>
            </div>
            <Text size="xs" c="dimmed" component="div">
              <Time at={at} />
            </Text>
          </li>
        ))}
      </ul>
    </Panel>
  );
}
