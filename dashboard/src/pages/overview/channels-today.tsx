import { Box, Progress, Stack, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import type { ChannelToday } from "../../api/index.ts";
import { SERIES } from "../../app/theme.ts";
import { LoadingState, numberText, Panel } from "../../parts/index.ts";
import styles from "./channels-today.module.css";

/** Each channel's messages of today as one bar: delivered, failed, and those whose end is not known yet. */
export function ChannelsToday({ channels }: { readonly channels: readonly ChannelToday[] | undefined }) {
  return (
    <Panel title="Today by channel and outcome" description="In the timezone of the statistics" h="100%">
      {channels === undefined ? <LoadingState lines={8} height={22} /> : <Bars channels={channels} />}
    </Panel>
  );
}

function Bars({ channels }: { readonly channels: readonly ChannelToday[] }) {
  return (
    <Stack gap="lg" mt="md">
      {channels.map((channel) => {
        const { sent, delivered, failed } = channel;
        const open = Math.max(0, sent - delivered - failed);
        const whole = Math.max(1, delivered + failed + open);
        const parts = [
          { label: "delivered", value: delivered, color: SERIES.good },
          { label: "failed", value: failed, color: SERIES.bad },
          { label: "under way", value: open, color: SERIES.other },
        ];
        return (
          <Box key={channel.name}>
            <div className={styles.head}>
              <Link to={channel.path} className={styles.name}>
                {channel.label}
              </Link>
              <Text size="sm" c="dimmed">
                {numberText(channel.queued)} queued, {numberText(sent)} sent
              </Text>
            </div>
            <Progress.Root size={12} radius="sm" my={6} aria-hidden>
              {parts.map(({ label, value, color }) => (
                <Progress.Section key={label} value={(100 * value) / whole} color={color} withAria={false} />
              ))}
            </Progress.Root>
            <div className={styles.parts}>
              {parts.map(({ label, value, color }) => (
                <span key={label}>
                  <Box component="span" className={styles.dot} bg={color} aria-hidden />
                  {numberText(value)} {label}
                </span>
              ))}
            </div>
          </Box>
        );
      })}
    </Stack>
  );
}
