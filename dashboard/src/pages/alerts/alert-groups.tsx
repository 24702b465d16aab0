import { Alert as Box, Code, Stack, Text } from "@mantine/core";
import { IconBook, IconCircleCheck } from "@tabler/icons-react";
import type { Read } from "../../api/index.ts";
import { DataTable, EmptyState, Num, Panel, StateBadge, Time } from "../../parts/index.ts";
import { type AlertGroup, type Meaning, meaningOf } from "./grouping.ts";

interface AlertGroupsProps {
  readonly read: Read<unknown>;
  readonly groups: readonly AlertGroup[] | undefined;
  readonly meanings: readonly Meaning[];
}

const TOLD = 20;

export function AlertGroups({ read, groups, meanings }: AlertGroupsProps) {
  return (
    <Panel title="By what they are about" description="Serious ones first; open one for what it means and what to do">
      <DataTable
        caption="Alerts by what they are about"
        rows={groups}
        read={read}
        keyOf={({ identifier }) => identifier}
        empty={
          <EmptyState title="No alerts" icon={<IconCircleCheck size={22} />}>
            Nothing has gone wrong so far. Warnings, errors and urgent news appear here as they happen.
          </EmptyState>
        }
        columns={[
          {
            title: "Alert",
            cell: ({ identifier, alerts }) => (
              <>
                <Code fz="sm">{identifier}</Code>
                <Text size="sm" lineClamp={2} mt={3}>
                  {alerts[0]?.text}
                </Text>
              </>
            ),
          },
          {
            title: "Level",
            cell: ({ level }) => <StateBadge state={level} label={level === "ops" ? "news" : level} />,
          },
          {
            title: "Times",
            align: "right",
            cell: ({ alerts }) => <Num value={alerts.length} />,
            sortBy: ({ alerts }) => alerts.length,
          },
          { title: "First", align: "right", cell: ({ first }) => <Time at={first} />, sortBy: ({ first }) => first },
          { title: "Last", align: "right", cell: ({ last }) => <Time at={last} />, sortBy: ({ last }) => last },
        ]}
        detail={({ identifier, alerts }) => (
          <Stack gap="md">
            <Explained meaning={meaningOf(meanings, identifier)} />
            {alerts.slice(0, TOLD).map((alert) => (
              <div key={`${alert.occurred_at} ${alert.text}`}>
                <Text size="sm" style={{ whiteSpace: "pre-wrap" }}>
                  {alert.text}
                </Text>
                <Text size="xs" c="dimmed" component="div">
                  <Time at={alert.occurred_at} as="moment" />, {alert.host}
                </Text>
              </div>
            ))}
            {alerts.length > TOLD && (
              <Text size="sm" c="dimmed">
                and <Num value={alerts.length - TOLD} /> more
              </Text>
            )}
          </Stack>
        )}
      />
    </Panel>
  );
}

function Explained({ meaning }: { readonly meaning: Meaning | undefined }) {
  if (!meaning)
    return (
      <Text size="sm" c="dimmed">
        The handbook has no line on it: the text and the log around that time tell more.
      </Text>
    );
  return (
    <Box color="bell" variant="light" icon={<IconBook />} title={`What it means (${meaning.section})`}>
      <Text size="sm">
        <WithCode text={meaning.means} />
      </Text>
      {meaning.remedy !== "" && (
        <Text size="sm" mt={6}>
          <strong>What to do:</strong> <WithCode text={meaning.remedy} />
        </Text>
      )}
    </Box>
  );
}

/** What the handbook has in backticks is code. */
function WithCode({ text }: { readonly text: string }) {
  return text.split("`").map((part, index) =>
    // biome-ignore lint/suspicious/noArrayIndexKey: parts of one sentence
    index % 2 === 1 ? <Code key={index}>{part}</Code> : part,
  );
}
