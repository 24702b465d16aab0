import { SimpleGrid } from "@mantine/core";
import { CHANNELS, todayOf, useToday } from "../../api/index.ts";
import { Num, numberText, StatTile } from "../index.ts";
import type { ChannelPlan } from "./plan.ts";

/** What became of a channel's messages today, in four numbers. */
export function TodayTiles({ plan }: { readonly plan: ChannelPlan }) {
  const { sends, ends } = CHANNELS.find(({ name }) => name === plan.name)!;
  const { today, reads } = useToday([sends, ends]);
  const isKnown = reads.every(({ isSuccess }) => isSuccess);
  const { queued, sent, delivered, failed } = todayOf(today).find(({ name }) => name === plan.name)!;
  const again = Number(today[sends]?.retried ?? 0);
  const ended = delivered + failed;
  return (
    <SimpleGrid cols={{ base: 2, sm: 4 }} spacing={{ base: "xs", sm: "md" }}>
      <StatTile
        label="Queued today"
        value={isKnown ? <Num value={queued} /> : undefined}
        note={`new ${plan.messages}`}
      />
      <StatTile
        label="Sent today"
        value={isKnown ? <Num value={sent} /> : undefined}
        note={again === 0 ? "all at the first try" : `${numberText(again)} further tries`}
      />
      <StatTile
        label="Delivered today"
        value={isKnown ? <Num value={delivered} /> : undefined}
        note={ended === 0 ? "no outcomes yet" : `${numberText(delivered / ended, "percent")} of known outcomes`}
      />
      <StatTile
        label="Failed today"
        value={isKnown ? <Num value={failed} /> : undefined}
        note={failed === 0 ? "nothing was given up" : "given up or refused"}
        tone={failed > 0 ? "bad" : "neutral"}
      />
    </SimpleGrid>
  );
}
