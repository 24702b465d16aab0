import { CHANNELS, outcomesOf, rowsOf, useDays } from "../../api/index.ts";
import { SERIES } from "../../app/theme.ts";
import { ChartCard } from "../index.ts";
import type { ChannelPlan } from "./plan.ts";

/** What became of a channel's messages, day by day. */
export function OutcomeChart({ plan, height }: { readonly plan: ChannelPlan; readonly height: number }) {
  const channel = CHANNELS.find(({ name }) => name === plan.name)!;
  const days = useDays([channel.sends, channel.ends]);
  return (
    <ChartCard
      title={`Outcomes over ${days.span}`}
      description={`What became of ${plan.messages}`}
      height={height}
      read={days.read}
      open={days.open()}
      rows={rowsOf(days.labels, outcomesOf(channel, days.series))}
      series={[
        { name: "delivered", label: "Delivered", color: SERIES.good },
        { name: "failed", label: "Failed", color: SERIES.bad },
      ]}
    />
  );
}
