/** When a recurring job runs, in words: `every 5 minutes`, `daily at 00:15`. Its timezone is told apart. */
interface Schedule {
  readonly tz?: string;
  readonly months?: readonly number[];
  readonly days_of_month?: readonly number[];
  readonly days_of_week?: readonly string[];
  readonly hours?: readonly number[];
  readonly minutes?: readonly number[];
  readonly seconds?: readonly number[];
}

const two = (value: number) => String(value).padStart(2, "0");

export function scheduleText(raw: Readonly<Record<string, unknown>>): string {
  const { months, days_of_month, days_of_week, hours, minutes, seconds } = raw as Schedule;
  const second = seconds?.[0] ?? 0;
  if (!hours) {
    return minutes ? steps(minutes, 60, "minute", "hour") : steps(seconds ?? [0], 60, "second", "minute");
  }
  const times = hours.flatMap((hour) =>
    (minutes ?? [0]).map((minute) => `${two(hour)}:${two(minute)}${second === 0 ? "" : `:${two(second)}`}`),
  );
  const when = times.length > 4 ? `${times.length} times a day` : `at ${times.join(", ")}`;
  const day = days_of_week
    ? days_of_week.join(", ")
    : days_of_month
      ? `on day ${days_of_month.join(", ")} of ${months ? `month ${months.join(", ")}` : "the month"}`
      : times.length > 4
        ? ""
        : "daily";
  return `${day} ${when}`.trim();
}

/** The timezone of the hours that a schedule names; none where it names none. */
export function zoneText({ hours, tz }: Readonly<Record<string, unknown>>): string | undefined {
  return hours === undefined ? undefined : String(tz).replaceAll("_", " ");
}

function steps(values: readonly number[], whole: number, unit: string, larger: string): string {
  if (values.length === 1) return `every ${larger}${values[0] === 0 ? "" : `, at ${unit} ${values[0]}`}`;
  const gap = whole / values.length;
  const isEven = values.every((value, index) => value === (values[0] ?? 0) + index * gap);
  if (!isEven) return `${values.length} times every ${larger}`;
  return gap === 1 ? `every ${unit}` : `every ${gap} ${unit}s`;
}
