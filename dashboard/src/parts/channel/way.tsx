import type { Read } from "../../api/index.ts";
import { useNow } from "../../app/clock.ts";
import type { Tone } from "../../app/theme.ts";
import { durationText, ErrorState, LoadingState, numberText, Panel } from "../index.ts";
import styles from "./way.module.css";

/** A place where messages stay for a while. */
export interface Station {
  readonly label: string;
  readonly count: number;
  /** When the first of them came. */
  readonly since?: number | null;
  /** When the next of them goes on. */
  readonly due?: number | null;
  readonly note?: string;
  readonly tone?: Tone;
}

interface WayProps {
  readonly title: string;
  readonly description: string;
  readonly stations: readonly Station[] | undefined;
  readonly reads: readonly Read<unknown>[];
}

/** The way of messages from place to place, with how many are in each now. */
export function Way({ title, description, stations, reads }: WayProps) {
  const now = useNow(1);
  const failed = reads.find(({ error }) => error !== null);
  return (
    <Panel title={title} description={description}>
      {stations ? (
        <ol className={styles.way}>
          {stations.map(({ label, count, since, due, note, tone }) => (
            <li key={label} className={styles.station} data-tone={count > 0 ? tone : undefined}>
              <span className={styles.label}>{label}</span>
              <span className={styles.count}>{numberText(count)}</span>
              <span className={styles.note}>{note ?? timeText(count, since, due, now)}</span>
            </li>
          ))}
        </ol>
      ) : failed?.error ? (
        <ErrorState error={failed.error} retry={() => void failed.refetch()} />
      ) : (
        <LoadingState lines={3} height={22} />
      )}
    </Panel>
  );
}

function timeText(count: number, since: number | null | undefined, due: number | null | undefined, now: number) {
  if (count === 0) return "none";
  if (due != null) return due > now ? `in ${durationText(Math.ceil(due - now))}` : "due now";
  if (since != null) return `for ${durationText(Math.max(0, Math.round(now - since)))}`;
  return "";
}
