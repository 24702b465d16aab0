import { CHANNELS, rowsOf, useDays } from "../../api/index.ts";
import { SERIES } from "../../app/theme.ts";
import { ChartCard } from "../index.ts";
import type { ChannelPlan } from "./plan.ts";

/** What became of a channel's messages, day by day. */
export function OutcomeChart({ plan, height }: { readonly plan: ChannelPlan; readonly height: number }) {
  const { sends, ends, delivered, failed } = CHANNELS.find(({ name }) => name === plan.name)!;
  const days = useDays([sends, ends]);
  const total = (of: typeof delivered | typeof failed) => {
    const before = days.series(sends, ...of.sends);
    return days.series(ends, ...of.ends).map((count, day) => count + (before[day] ?? 0));
  };
  return (
    <ChartCard
      title={`Outcomes over ${days.span}`}
      description={`What became of ${plan.messages}`}
      height={height}
      read={days.read}
      rows={rowsOf(days.labels, { delivered: total(delivered), failed: total(failed) })}
      series={[
        { name: "delivered", label: "Delivered", color: SERIES.good },
        { name: "failed", label: "Failed", color: SERIES.bad },
      ]}
    />
  );
}
