import type { Tone } from "../app/theme.ts";
import styles from "./state-badge.module.css";

/** Which tone the states of messages, jobs and alerts have; what is not here is neutral. */
const TONES: Readonly<Record<string, Tone>> = {
  ok: "good",
  works: "good",
  succeeded: "good",
  finished: "good",
  delivered: "good",
  clicked: "good",
  enabled: "good",
  verified: "good",
  running: "info",
  sending: "info",
  accepted: "info",
  sent: "info",
  pending: "info",
  queued: "neutral",
  never: "neutral",
  delayed: "neutral",
  ops: "neutral",
  retrying: "warn",
  retried: "warn",
  overdue: "warn",
  paused: "warn",
  stopped: "warn",
  late: "warn",
  warning: "warn",
  unreachable: "warn",
  suppressed: "warn",
  failed: "bad",
  last_failed: "bad",
  abandoned: "bad",
  bounced: "bad",
  complained: "bad",
  complaint: "bad",
  error: "bad",
  urgent: "bad",
  timeout: "bad",
  crashed: "bad",
  critical: "bad",
  quarantined: "bad",
};

export function toneOf(state: string): Tone {
  return TONES[state] ?? "neutral";
}

interface StateBadgeProps {
  readonly state: string;
  /** Instead of the state's own name, whose underscores are shown as spaces. */
  readonly label?: string;
  readonly tone?: Tone;
}

export function StateBadge({ state, label = state.replaceAll("_", " "), tone = toneOf(state) }: StateBadgeProps) {
  return (
    <span className={styles.badge} data-tone={tone}>
      {label}
    </span>
  );
}
