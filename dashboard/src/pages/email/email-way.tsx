import { LIVE, useRead } from "../../api/index.ts";
import { type Station, Way } from "../../parts/channel/way.tsx";

/** From the queue to the receipt. */
export function EmailWay() {
  const send = useRead("/api/1/admin/email/send_queue_info", undefined, { every: LIVE });
  const pending = useRead("/api/1/admin/email/receipt_pending_info", undefined, { every: LIVE });
  const news = useRead("/api/1/admin/email/event_queue_info", undefined, { every: LIVE });
  const [waiting, open, events] = [send.data, pending.data, news.data];
  const stations: readonly Station[] | undefined = waiting &&
    open &&
    events && [
      { label: "Urgent ones waiting", count: waiting.urgent, note: "go first" },
      {
        label: "Others waiting",
        count: waiting.length - waiting.urgent,
        since: waiting.oldest_last_queued_at,
      },
      {
        label: "Waiting for a retry",
        count: waiting.retrying,
        note: waiting.retrying === 0 ? "none" : "soon",
        tone: "warn",
      },
      {
        label: "Set aside by a pause",
        count: waiting.paused,
        note: waiting.paused === 0 ? "none" : "on hold",
        tone: "warn",
      },
      { label: "Awaiting a receipt", count: open.count, since: open.oldest_send_accepted_at },
      { label: "News to work in", count: events.length, since: events.oldest_last_queued_at },
      { label: "News that came early", count: events.early, note: events.early === 0 ? "none" : "kept" },
    ];
  return (
    <Way
      title="On their way"
      description="Where mails and news of them are at this moment"
      stations={stations}
      reads={[send, pending, news]}
    />
  );
}
