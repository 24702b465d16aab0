import { Anchor, Code, Group, Progress, Stack, Text } from "@mantine/core";
import { IconCircleCheck } from "@tabler/icons-react";
import { useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { type Answer, type Read, useRead } from "../../api/index.ts";
import { DataTable, durationText, EmptyState, Num, numberText, Panel, StateBadge, Time } from "../../parts/index.ts";

export type Audit = NonNullable<Answer<"get", "/api/1/admin/keys/audit">["audit"]>;
type Finding = Audit["findings"][number];

/** What to make of each kind of finding. */
const KINDS: Readonly<Record<Finding["kind"], string>> = {
  unknown_key: "No declared pattern fits: another program shares this Redis, or an old version left it.",
  wrong_type: "Another Redis type than declared: rename it away, and the family works again.",
  undecodable_value: "The value does not have the declared shape.",
  missing_ttl: "It should expire and never will: set a TTL, or delete it.",
  forbidden_ttl: "It should stay and will expire: PERSIST it.",
  excessive_ttl: "It lives longer than its declaration allows.",
  broken_invariant: "A rule over several keys does not hold.",
};

interface AuditPanelProps {
  readonly read: Read<Answer<"get", "/api/1/admin/keys/audit">>;
  /** The progress of an audit that was started here. */
  readonly running: string | undefined;
  readonly onExplore: (name: string) => void;
}

export function AuditPanel({ read, running, onExplore }: AuditPanelProps) {
  const audit = read.data?.audit;
  return (
    <Panel
      title="Audit"
      description={
        audit ? (
          <>
            <Time at={audit.started_at} />, {durationText(audit.seconds)}, {numberText(audit.invariants)} rules checked
            {audit.deep ? ", deep" : ""}
          </>
        ) : (
          "Compares every key in Redis with its declaration, beside all traffic. It only reads."
        )
      }
    >
      <Stack gap="md">
        {running !== undefined && <Running key={running} uid={running} />}
        {audit?.ok === true && (
          <EmptyState title="Everything is as declared" icon={<IconCircleCheck size={22} />}>
            {numberText(audit.keys)} keys were looked at.
          </EmptyState>
        )}
        {audit?.ok !== true && (
          <DataTable
            caption="Findings"
            rows={audit === null ? [] : audit?.findings}
            read={read}
            keyOf={({ kind, pattern, key, detail }) => `${kind} ${pattern} ${key} ${detail}`}
            expect={2}
            empty={
              <EmptyState title="No audit so far">
                Press Audit: every pattern is counted, weighed and checked.
              </EmptyState>
            }
            columns={[
              {
                title: "Finding",
                cell: ({ kind }) => <StateBadge state={kind} tone={kind === "unknown_key" ? "warn" : "bad"} />,
                sortBy: ({ kind }) => kind,
              },
              { title: "Where", cell: (finding) => <Where finding={finding} onExplore={onExplore} /> },
              {
                title: "What",
                cell: ({ kind, detail }) => (
                  <>
                    <Text size="sm">{detail}</Text>
                    <Text size="xs" c="dimmed">
                      {KINDS[kind]}
                    </Text>
                  </>
                ),
              },
            ]}
          />
        )}
        {audit && audit.found > audit.findings.length && (
          <Text size="sm" c="dimmed">
            <Num value={audit.found} /> findings in all; the first few of each kind and pattern are listed.
          </Text>
        )}
      </Stack>
    </Panel>
  );
}

function Where({
  finding: { key, pattern },
  onExplore,
}: {
  finding: Finding;
  onExplore: AuditPanelProps["onExplore"];
}) {
  if (key === null) return <Code fz="sm">{pattern ?? "–"}</Code>;
  return (
    <Anchor component="button" type="button" ta="left" onClick={() => onExplore(key)}>
      <Code fz="sm">{key}</Code>
    </Anchor>
  );
}

/** How far an audit is; when it has ended, its result is read. */
function Running({ uid }: { readonly uid: string }) {
  const path = "/api/1/admin/jobs/progress/{job_uid}";
  const client = useQueryClient();
  const read = useRead(path, { path: { job_uid: uid } }, { every: 1 });
  const isDone = read.data?.done ?? false;
  useEffect(() => {
    if (isDone) void client.invalidateQueries({ queryKey: ["/api/1/admin/keys/audit"] });
  }, [isDone, client]);
  const last = read.data?.events.at(-1);
  const bar = read.data?.events.findLast(({ indicator }) => indicator?.type === "bar")?.indicator;
  const share = bar?.type === "bar" && bar.of > 0 ? (100 * bar.at) / bar.of : isDone ? 100 : 3;
  return (
    <Stack gap={6} role="status" aria-label="Progress of the audit">
      <Group gap="sm">
        <StateBadge state={isDone ? (last?.type ?? "succeeded") : "running"} />
        <Text size="sm">
          {last?.message ?? "waits for a worker"}
          {bar?.type === "bar" && !isDone ? `: ${numberText(bar.at)} of ${numberText(bar.of)}` : ""}
        </Text>
      </Group>
      <Progress value={isDone ? 100 : share} size="lg" animated={!isDone} aria-label="Keys looked at" />
    </Stack>
  );
}
