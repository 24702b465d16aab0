import { Group, Loader, Stack, Text, Timeline } from "@mantine/core";
import { useEffect, useState } from "react";
import { type Answer, CALM, CarillonApiError, useRead } from "../../api/index.ts";
import { useNow } from "../../app/clock.ts";
import type { Tone } from "../../app/theme.ts";
import { Duration, durationText, ErrorState, StateBadge, Time } from "../index.ts";

type Trace = Answer<"get", "/api/1/admin/messages/{uid}">;
type Step = Trace["steps"][number];

const COLORS: Readonly<Record<Tone, string>> = {
  good: "var(--series-good)",
  bad: "var(--series-bad)",
  warn: "var(--series-email)",
  info: "var(--series-push)",
  neutral: "var(--series-other)",
};

const ENDS = new Set([
  "delivered",
  "confirmed",
  "ended",
  "bounced",
  "complained",
  "abandoned",
  "timed_out",
  "failed_permanently",
]);

/** Where a message is and everything that happened to it, as it happens. */
export function MessageStory({ uid }: { readonly uid: string }) {
  const [isOver, setOver] = useState(false);
  const read = useRead("/api/1/admin/messages/{uid}", { path: { uid } }, { every: isOver ? CALM : 1 });
  const trace = read.data;
  const hasEnded = trace !== undefined && trace.now.length === 0;
  useEffect(() => setOver(hasEnded), [hasEnded]);
  if (!trace) {
    // It may be between two places, and known a moment later.
    const isUnknown = read.error instanceof CarillonApiError && read.error.status === 404;
    if (read.error && !isUnknown) return <ErrorState error={read.error} retry={() => void read.refetch()} />;
    return <Loader size="xs" role="status" aria-label="Looking for the message" />;
  }
  // News can overtake: once it is over, what ended it counts, not what was noted last.
  const last = (hasEnded ? trace.steps.findLast(({ step }) => ENDS.has(step)) : undefined) ?? trace.steps.at(-1);
  return (
    <Stack gap="md">
      <Stack gap={4} role="status">
        <Group gap="sm">
          {last && <StateBadge state={last.step} label={labelOf(last)} tone={toneOf(last)} />}
          {!hasEnded && <Loader size="xs" aria-hidden />}
          <Text size="sm" c="dimmed" component="span">
            {hasEnded ? "It has ended" : "On its way"}
            {trace.seconds !== null && trace.seconds > 0 && (
              <>
                {hasEnded ? " after " : " for "}
                <Duration seconds={trace.seconds} />
              </>
            )}
          </Text>
        </Group>
        {trace.now.map((sighting) => (
          <NowText key={`${sighting.place} ${sighting.state}`} sighting={sighting} />
        ))}
      </Stack>
      <Timeline bulletSize={14} lineWidth={2} active={trace.steps.length}>
        {trace.steps.map((step) => (
          <Timeline.Item
            key={`${step.at} ${step.step}`}
            color={COLORS[toneOf(step)]}
            title={
              <Text size="sm" fw={550}>
                {labelOf(step)}
              </Text>
            }
          >
            <Text size="xs" c="dimmed" component="div">
              <Time at={step.at} as="moment" />
              {step.provider !== null && <> by {step.provider}</>}
              {step.lasted !== null && <>, {durationText(step.lasted)} until the next</>}
            </Text>
            {step.detail !== null && step.step !== "ended" && (
              <Text size="xs" c="dimmed">
                {step.detail}
              </Text>
            )}
          </Timeline.Item>
        ))}
      </Timeline>
      <Text size="xs" c="dimmed">
        {uid}
      </Text>
    </Stack>
  );
}

function NowText({ sighting }: { readonly sighting: Trace["now"][number] }) {
  const now = useNow(1);
  const { state, ahead, due } = sighting;
  const more = [
    ahead !== null && ahead > 0 ? `${ahead} before it` : undefined,
    due !== null && due > now ? `in ${durationText(due - now)}` : undefined,
  ].filter((text) => text !== undefined);
  return (
    <Text size="sm">
      It {state}
      {more.length > 0 && ` (${more.join(", ")})`}.
    </Text>
  );
}

const GOOD_ENDS = /^(delivered|sent|read|received)\b/;

/** `ended` says nothing by itself: what the provider said last does. */
const labelOf = ({ step, detail }: Step) => (step === "ended" && detail !== null ? detail : step).replaceAll("_", " ");

function toneOf({ step, detail }: Step): Tone {
  if (step === "ended") return GOOD_ENDS.test(detail ?? "") ? "good" : "bad";
  if (step === "delivered" || step === "confirmed") return "good";
  if (step === "accepted" || step === "updated" || step === "asked_about") return "info";
  if (step === "retried" || step === "silent" || step === "failed_transiently") return "warn";
  return step === "queued" ? "neutral" : "bad";
}
