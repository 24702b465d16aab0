import { LIVE, useRead } from "../../api/index.ts";
import { type Station, Way } from "../../parts/channel/way.tsx";
import { durationText, numberText } from "../../parts/index.ts";

/** From the queue to the last news. */
export function SmsWay() {
  const send = useRead("/api/1/admin/sms/send_queue_info", undefined, { every: LIVE });
  const pending = useRead("/api/1/admin/sms/pending_set_info", undefined, { every: LIVE });
  const news = useRead("/api/1/admin/sms/event_queue_info", undefined, { every: LIVE });
  const recovery = useRead("/api/1/admin/sms/recovery_queue_info", undefined, { every: LIVE });
  const [waiting, open, events, silent] = [send.data, pending.data, news.data, recovery.data];
  const stations: readonly Station[] | undefined = waiting &&
    open &&
    events &&
    silent && [
      { label: "Waiting to be sent", count: waiting.length, since: waiting.oldest_last_queued_at },
      {
        label: "Waiting for a retry",
        count: waiting.retrying,
        note: waiting.retrying === 0 ? "none" : "soon",
        tone: "warn",
      },
      {
        label: "With the provider",
        count: open.length,
        ...(open.num_overdue > 0
          ? { note: `${numberText(open.num_overdue)} overdue`, tone: "warn" }
          : { note: open.length === 0 ? "none" : "no end yet" }),
      },
      { label: "To be asked about", count: silent.length + silent.purgatory_size, note: "silent ones" },
      {
        label: "News to work in",
        count: events.length,
        ...(events.oldest_item_delay !== null && events.length > 0
          ? { note: `after ${durationText(events.oldest_item_delay)}` }
          : { since: events.oldest_information_received_at }),
      },
      { label: "News that came early", count: events.early, note: events.early === 0 ? "none" : "kept" },
    ];
  return (
    <Way
      title="On their way"
      description="Where texts and news of them are at this moment"
      stations={stations}
      reads={[send, pending, news, recovery]}
    />
  );
}
