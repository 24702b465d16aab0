import { LIVE, type Read, useRead } from "../../api/index.ts";
import { useNow } from "../../app/clock.ts";
import { type Column, DataTable, durationText, EmptyState, Num, Panel } from "../../parts/index.ts";

interface Queue {
  readonly name: string;
  readonly waiting: number;
  /** Failed once and due later. */
  readonly retrying: number | null;
  /** Sent, with the provider's last word still to come. */
  readonly pending: number | null;
  /** Unix seconds. */
  readonly oldestAt: number | null;
}

export interface Queues {
  readonly rows: readonly Queue[] | undefined;
  readonly reads: readonly Read<unknown>[];
}

/** Every queue that a message passes, from the same reads that its own page uses. */
export function useQueues(): Queues {
  const live = { every: LIVE };
  const jobs = useRead("/api/1/admin/jobs/queues", undefined, live);
  const touch = useRead("/api/1/admin/touch/send_queue_info", undefined, live);
  const touchPending = useRead("/api/1/admin/touch/pending_sorted_set_info", undefined, live);
  const push = useRead("/api/1/admin/notifs/queue_overview", undefined, live);
  const sms = useRead("/api/1/admin/sms/send_queue_info", undefined, live);
  const smsPending = useRead("/api/1/admin/sms/pending_set_info", undefined, live);
  const email = useRead("/api/1/admin/email/send_queue_info", undefined, live);
  const emailPending = useRead("/api/1/admin/email/receipt_pending_info", undefined, live);
  const reads = [jobs, touch, touchPending, push, sms, smsPending, email, emailPending];
  const isWhole =
    jobs.data &&
    touch.data &&
    touchPending.data &&
    push.data &&
    sms.data &&
    smsPending.data &&
    email.data &&
    emailPending.data;
  if (!isWhole) return { rows: undefined, reads };
  const hot = jobs.data.queues;
  const rows: Queue[] = [
    {
      name: "Jobs",
      waiting: hot.reduce((sum, { length }) => sum + length, 0),
      retrying: jobs.data.delayed,
      pending: null,
      oldestAt: earliest(hot.map(({ oldest_queued_at }) => oldest_queued_at)),
    },
    {
      name: "Touches",
      waiting: touch.data.length,
      retrying: null,
      pending: touchPending.data.length,
      oldestAt: touch.data.oldest_queued_at,
    },
    {
      name: "Push",
      waiting: push.data.to_send.length,
      retrying: push.data.retrying.length,
      pending: push.data.cold.length + push.data.hot.length,
      oldestAt: push.data.to_send.oldest_last_queued_at,
    },
    {
      name: "SMS",
      waiting: sms.data.length,
      retrying: sms.data.retrying,
      pending: smsPending.data.length,
      oldestAt: sms.data.oldest_last_queued_at,
    },
    {
      name: "Email",
      waiting: email.data.length + email.data.urgent,
      retrying: email.data.retrying,
      pending: emailPending.data.count,
      oldestAt: email.data.oldest_last_queued_at,
    },
  ];
  return { rows, reads };
}

function earliest(times: readonly (number | null)[]): number | null {
  const known = times.filter((time) => time !== null);
  return known.length === 0 ? null : Math.min(...known);
}

export function QueuesPanel({ queues }: { readonly queues: Queues }) {
  const now = useNow(1);
  const columns: readonly Column<Queue>[] = [
    { title: "Queue", cell: ({ name }) => name },
    { title: "Waiting", align: "right", cell: ({ waiting }) => <Num value={waiting} /> },
    { title: "For later", align: "right", cell: ({ retrying }) => <Num value={retrying} /> },
    { title: "Awaiting news", align: "right", cell: ({ pending }) => <Num value={pending} /> },
    {
      title: "Oldest waits for",
      align: "right",
      cell: ({ oldestAt }) => (oldestAt === null ? "–" : durationText(Math.max(0, now - oldestAt))),
    },
  ];
  const failed = queues.reads.find(({ error }) => error !== null);
  return (
    <Panel title="Queues" description="What waits now, and for how long" h="100%">
      <DataTable
        caption="Queues with their depth and age"
        columns={columns}
        rows={queues.rows}
        keyOf={({ name }) => name}
        read={failed}
        expect={5}
        empty={<EmptyState title="There are no queues" />}
      />
    </Panel>
  );
}
