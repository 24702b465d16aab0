import { LIVE, useRead } from "../../api/index.ts";
import { type Station, Way } from "../../parts/channel/way.tsx";
import { numberText } from "../../parts/index.ts";

/** From the queue to the receipt. */
export function PushWay() {
  const overview = useRead("/api/1/admin/notifs/queue_overview", undefined, { every: LIVE });
  const tokens = useRead("/api/1/admin/notifs/total_push_tokens", undefined, { every: 30 });
  const { data } = overview;
  const stations: readonly Station[] | undefined = data && [
    { label: "Waiting to be sent", count: data.to_send.length, since: data.to_send.oldest_last_queued_at },
    { label: "Waiting for a retry", count: data.retrying.length, due: data.retrying.next_due_at, tone: "warn" },
    { label: "Being sent", count: data.send_purgatory, note: data.running.send ? "now" : "none" },
    {
      label: "Ticket resting",
      count: data.cold.length,
      ...(data.cold.num_overdue > 0
        ? { note: `${numberText(data.cold.num_overdue)} may be asked for` }
        : { since: data.cold.oldest_last_queued_at }),
    },
    { label: "Receipt to ask for", count: data.hot.length, since: data.hot.oldest_last_queued_at },
    {
      label: "Asking for receipt",
      count: data.ticket_purgatory,
      note: data.running.check ? "now" : "none",
    },
    {
      label: "Set aside",
      count: data.quarantined,
      note: data.quarantined === 0 ? "none" : "to decide on",
      tone: "bad",
    },
  ];
  const devices = tokens.data ? `; ${numberText(tokens.data.total_push_tokens)} devices are known` : "";
  return (
    <Way
      title="On their way"
      description={`Where notifications are at this moment${devices}`}
      stations={stations}
      reads={[overview]}
    />
  );
}
