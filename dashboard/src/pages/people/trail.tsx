import { Anchor, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { LIVE, useRead } from "../../api/index.ts";
import type { Tone } from "../../app/theme.ts";
import { DataTable, EmptyState, JsonView, Panel, StateBadge, Time, useKeyPages } from "../../parts/index.ts";

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
  return (
    <Panel title="Debug trail" description="Every step of their touches, the newest first">
      <DataTable
        caption="Debug trail of the person, the newest first"
        rows={read.data?.items}
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
            cell: ({ event }) =>
              typeof event.touch_uid === "string" ? (
                <Anchor component={Link} to={`/touches/${event.touch_uid}`} size="sm">
                  timeline
                </Anchor>
              ) : (
                "–"
              ),
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
function summaryOf(event: Readonly<Record<string, unknown>>): string {
  const told = Object.entries(event).filter(
    ([name, value]) => !["type", "parent", "touch_uid", "queued_at"].includes(name) && typeof value !== "object",
  );
  return told.map(([name, value]) => `${name.replaceAll("_", " ")} ${String(value)}`).join(", ") || "–";
}
