import { Group, Timeline as Line, SegmentedControl, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { durationText, Panel, Time } from "../../parts/index.ts";
import styles from "./stations.module.css";
import { COLORS, labelOf, type Moment, type Timeline, toneOf } from "./steps.ts";

/** Every moment of a touch and of its messages, in order, or those of one message alone. */
export function Moments({ timeline }: { readonly timeline: Timeline }) {
  const messages = [...new Set(timeline.moments.flatMap(({ message_uid }) => message_uid ?? []))];
  const [of, setOf] = useState("all");
  const shown = timeline.moments.filter(({ message_uid }) => of === "all" || message_uid === of);
  return (
    <Panel
      title="What happened"
      description={`${timeline.moments.length} moments, ${messages.length === 1 ? "one message" : `${messages.length} messages`}`}
    >
      <Stack gap="md">
        {messages.length > 1 && (
          <SegmentedControl
            aria-label="Whose moments"
            value={of}
            onChange={setOf}
            w="fit-content"
            data={[
              { value: "all", label: "All" },
              ...messages.map((uid, at) => ({ value: uid, label: `Message ${at + 1}` })),
            ]}
          />
        )}
        <Line bulletSize={16} lineWidth={2} active={shown.length} role="list" aria-label="Moments of the touch">
          {shown.map((moment, at) => (
            <Line.Item
              // biome-ignore lint/suspicious/noArrayIndexKey: moments only ever join at the end, and two may be alike
              key={at}
              role="listitem"
              className={styles.moment}
              color={COLORS[toneOf(moment)]}
              bullet={<span />}
              title={
                <Text size="sm" fw={600}>
                  {labelOf(moment)}
                </Text>
              }
            >
              <Facts moment={moment} before={shown[at - 1]} which={messages.indexOf(moment.message_uid ?? "")} />
            </Line.Item>
          ))}
        </Line>
      </Stack>
    </Panel>
  );
}

interface FactsProps {
  readonly moment: Moment;
  readonly before: Moment | undefined;
  readonly which: number;
}

function Facts({ moment, before, which }: FactsProps) {
  const { at, provider, detail, message_uid, step } = moment;
  return (
    <>
      {detail !== null && step !== "ended" && detail !== step && <Text size="sm">{detail}</Text>}
      <Group gap={6} fz="xs" c="dimmed">
        <Time at={at} as="moment" />
        {before && at - before.at >= 0.001 && <span>+{durationText(at - before.at)}</span>}
        {provider !== null && <span>by {provider}</span>}
        {which >= 0 && <span title={message_uid ?? undefined}>message {which + 1}</span>}
      </Group>
    </>
  );
}
