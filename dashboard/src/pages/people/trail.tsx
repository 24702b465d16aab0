import { Anchor, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { LIVE, useRead } from "../../api/index.ts";
import type { Tone } from "../../app/theme.ts";
import {
  addressText,
  countedField,
  DataTable,
  EmptyState,
  JsonView,
  Panel,
  StateBadge,
  Time,
  useKeyPages,
} from "../../parts/index.ts";

type Step = Readonly<Record<string, unknown>>;

const TONES: Readonly<Record<string, Tone>> = {
  send_attempt: "info",
  send_reachable: "info",
  send_success: "good",
  send_retry: "warn",
  send_stale: "bad",
  send_unreachable: "bad",
  send_event_improper: "bad",
  send_abandon: "bad",
  send_unretryable: "bad",
};

/** Every step that was taken to tell somebody something, whatever came of it. */
export function Trail({ sub }: { readonly sub: string }) {
  const { cursor, pager } = useKeyPages<number>();
  const read = useRead(
    "/api/1/admin/users/{sub}/touch_debug_log",
    { path: { sub }, query: { limit: 25, before: cursor } },
    { every: LIVE },
  );
  const rows = read.data?.items;
  const byUid = new Map(rows?.map(({ uid, event }) => [uid, event]));
  // Only the first step names the touch; the others name the step that they followed.
  const touchOf = (event: Step, depth = 0): string | undefined =>
    typeof event.touch_uid === "string"
      ? event.touch_uid
      : depth > 4 || !byUid.has(String(event.parent))
        ? undefined
        : touchOf(byUid.get(String(event.parent))!, depth + 1);
  return (
    <Panel title="Debug trail" description="Every step of their touches, the newest first">
      <DataTable
        caption="Debug trail of the person, the newest first"
        rows={rows}
        read={read}
        keyOf={({ uid }) => uid}
        expect={8}
        empty={
          <EmptyState title="Nobody has tried to tell them anything">
            `CARILLON_TOUCH_DEBUG_LOG` says how much is kept: everything, failures or nothing.
          </EmptyState>
        }
        columns={[
          {
            title: "Step",
            cell: ({ event }) => (
              <StateBadge
                state={String(event.type)}
                label={String(event.type)
                  .replace(/^send_/, "")
                  .replaceAll("_", " ")}
                tone={TONES[String(event.type)] ?? "neutral"}
              />
            ),
          },
          {
            title: "What",
            cell: ({ event }) => (
              <Text size="sm" lineClamp={2}>
                {summaryOf(event)}
              </Text>
            ),
          },
          {
            title: "Touch",
            cell: ({ event }) => {
              const touch = touchOf(event);
              return touch === undefined ? (
                "–"
              ) : (
                <Anchor component={Link} to={`/touches/${touch}`} size="sm">
                  timeline
                </Anchor>
              );
            },
          },
          { title: "When", align: "right", cell: ({ created_at }) => <Time at={created_at} /> },
        ]}
        detail={({ event }) => <JsonView value={event} />}
      />
      {pager(read.data?.next)}
    </Panel>
  );
}

/** The texts of a step, without what says only where it belongs. */
function summaryOf(event: Step): string {
  const told = Object.entries(event).flatMap(([name, value]) => {
    if (["type", "parent", "touch_uid", "queued_at"].includes(name)) return [];
    if (Array.isArray(value)) return [countedField(name, value.length)];
    if (typeof value === "object") return [];
    return [`${name.replaceAll("_", " ")} ${addressText(String(value))}`];
  });
  return told.join(", ") || "–";
}
