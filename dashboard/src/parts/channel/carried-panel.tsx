import { Box, Group, Progress, Text } from "@mantine/core";
import { type Answer, CALM, useRead } from "../../api/index.ts";
import { SERIES } from "../../app/theme.ts";
import styles from "../chart-card.module.css";
import { DataTable, EmptyState, Num, numberText, Panel } from "../index.ts";
import type { ChannelPlan } from "./plan.ts";

const DAYS = 7;

type Carried = Answer<"get", "/api/1/admin/providers/carried">["items"][number];

interface Day {
  readonly date: string;
  readonly taken: Readonly<Record<string, number>>;
  readonly sum: number;
  readonly failed: number;
}

/** Which provider took how many messages on each of the latest days: after another took over, what went through whom. */
export function CarriedPanel({ plan }: { readonly plan: ChannelPlan }) {
  const read = useRead("/api/1/admin/providers/carried", { query: { days: DAYS } }, { every: CALM });
  const items = read.data?.items.filter(({ channel }) => channel === plan.name);
  const days = items && daysOf(items);
  const most = Math.max(1, ...(days ?? []).map(({ sum }) => sum));
  const providers = providersOf(items ?? []);
  const colors = [plan.color, ...[SERIES.click, SERIES.other, SERIES.good].filter((color) => color !== plan.color)];
  const colorOf = (provider: string) => colors[providers.indexOf(provider)] ?? SERIES.other;
  return (
    <Panel title="Carried by" description={`Which provider took how many ${plan.messages}, ${DAYS} days`} h="100%">
      {providers.length > 0 && (
        <Group gap="md" mb="xs">
          {providers.map((provider) => (
            <span key={provider} className={styles.legend}>
              <Box component="span" className={styles.swatch} bg={colorOf(provider)} />
              {provider}
              <b>{numberText(takenBy(items ?? [], provider), "short")}</b>
            </span>
          ))}
        </Group>
      )}
      <DataTable
        caption={`Which provider took how many ${plan.messages}, by day`}
        rows={days}
        read={read}
        expect={3}
        keyOf={({ date }) => date}
        empty={
          <EmptyState title="Nobody carried any">
            {`What providers took of ${plan.messages} is told here a moment after they took it.`}
          </EmptyState>
        }
        columns={[
          { title: "Day", cell: ({ date }) => <span style={{ whiteSpace: "nowrap" }}>{date}</span> },
          {
            title: "Taken by",
            cell: ({ taken }) => (
              <Box miw={120}>
                <Progress.Root size={10} radius="sm" mb={4} bg="transparent" aria-hidden>
                  {providers.map((provider) => (
                    <Progress.Section
                      key={provider}
                      value={(100 * (taken[provider] ?? 0)) / most}
                      color={colorOf(provider)}
                      withAria={false}
                    />
                  ))}
                </Progress.Root>
                <Text size="xs" c="dimmed">
                  {providers
                    .filter((provider) => taken[provider])
                    .map((provider) => `${provider} ${numberText(taken[provider]!)}`)
                    .join(", ") || "nobody"}
                </Text>
              </Box>
            ),
          },
          {
            title: "Failed",
            align: "right",
            cell: ({ failed }) => (
              <Text span fz="inherit" c={failed > 0 ? "var(--tone-bad)" : undefined}>
                <Num value={failed} />
              </Text>
            ),
          },
        ]}
      />
    </Panel>
  );
}

const takenOf = ({ steps }: Carried) => steps.accepted ?? 0;
const takenBy = (items: readonly Carried[], provider: string) =>
  items.filter((item) => item.provider === provider).reduce((sum, item) => sum + takenOf(item), 0);

/** The one that took the most first. */
function providersOf(items: readonly Carried[]): readonly string[] {
  const names = [...new Set(items.map(({ provider }) => provider))];
  return names.sort((one, other) => takenBy(items, other) - takenBy(items, one));
}

/** As the server tells them, the latest first. */
function daysOf(items: readonly Carried[]): readonly Day[] {
  return [...new Set(items.map(({ date }) => date))].map((date) => {
    const those = items.filter((item) => item.date === date);
    return {
      date,
      taken: Object.fromEntries(those.map((item) => [item.provider, takenOf(item)])),
      sum: those.reduce((sum, item) => sum + takenOf(item), 0),
      failed: those.reduce((sum, { steps }) => sum + (steps.failed ?? 0), 0),
    };
  });
}
