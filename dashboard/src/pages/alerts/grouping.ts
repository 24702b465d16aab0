import type { Answer } from "../../api/index.ts";

export type Alert = Answer<"get", "/api/1/admin/alerts">["items"][number];
export type Meaning = Answer<"get", "/api/1/admin/alerts/meanings">["items"][number];

/** All alerts of one identifier. */
export interface AlertGroup {
  readonly identifier: string;
  /** The most serious level among them. */
  readonly level: Alert["level"];
  readonly first: number;
  readonly last: number;
  /** Newest first. */
  readonly alerts: readonly Alert[];
}

const SERIOUSNESS: readonly Alert["level"][] = ["urgent", "error", "warning", "ops"];

/** Alerts by what they are about, serious ones first, then the newest. */
export function groupsOf(alerts: readonly Alert[]): readonly AlertGroup[] {
  const byIdentifier = new Map<string, Alert[]>();
  for (const alert of alerts)
    byIdentifier.set(alert.identifier, [...(byIdentifier.get(alert.identifier) ?? []), alert]);
  const rank = (level: Alert["level"]) => SERIOUSNESS.indexOf(level);
  return [...byIdentifier]
    .map(([identifier, same]) => ({
      identifier,
      level: same.reduce((worst, { level }) => (rank(level) < rank(worst) ? level : worst), same[0]!.level),
      first: Math.min(...same.map(({ occurred_at }) => occurred_at)),
      last: Math.max(...same.map(({ occurred_at }) => occurred_at)),
      alerts: same,
    }))
    .sort((one, other) => rank(one.level) - rank(other.level) || other.last - one.last);
}

/** What the handbook says of an identifier; parts in braces stand for anything. */
export function meaningOf(meanings: readonly Meaning[], identifier: string): Meaning | undefined {
  const exact = meanings.find((meaning) => meaning.identifier === identifier);
  return exact ?? meanings.find((meaning) => patternOf(meaning.identifier).test(identifier));
}

function patternOf(identifier: string): RegExp {
  const parts = identifier.split(/\{[^}]*\}/).map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${parts.join(".+")}$`);
}
