import { SimpleGrid, Stack, Switch } from "@mantine/core";
import { useState } from "react";
import { LIVE, useRead } from "../../api/index.ts";
import { useNow } from "../../app/clock.ts";
import { LiveIndicator, Num, PageHeader, StatTile, Time } from "../../parts/index.ts";
import { AlertGroups } from "./alert-groups.tsx";
import { groupsOf } from "./grouping.ts";

const DAY = 86_400;

export function Page() {
  const read = useRead("/api/1/admin/alerts", undefined, { every: LIVE });
  const meanings = useRead("/api/1/admin/alerts/meanings");
  const [withNews, setWithNews] = useState(false);
  const now = useNow(5);
  const items = read.data?.items;
  const warnings = items?.filter(({ level }) => level !== "ops");
  const today = warnings?.filter(({ occurred_at }) => occurred_at > now - DAY);
  const urgent = warnings?.filter(({ level }) => level === "urgent" || level === "error").length ?? 0;
  const newest = warnings?.[0];
  return (
    <>
      <PageHeader title="Alerts" actions={<LiveIndicator of={[read]} />}>
        What went wrong, how often, and what to do about it. The last 200 of all processes.
      </PageHeader>
      <Stack gap="md">
        <SimpleGrid cols={{ base: 2, sm: 4 }} spacing={{ base: "xs", sm: "md" }}>
          <StatTile label="Alerts" value={warnings && <Num value={warnings.length} />} note="kept" />
          <StatTile
            label="Last 24 hours"
            value={today && <Num value={today.length} />}
            note={today?.length === 0 ? "a calm day" : "of them"}
          />
          <StatTile
            label="Serious"
            value={warnings && <Num value={urgent} />}
            note={urgent === 0 ? "none" : "urgent ones and errors"}
            tone={urgent > 0 ? "bad" : "neutral"}
          />
          <StatTile
            label="Latest"
            value={warnings && <Time at={newest?.occurred_at} />}
            note={newest?.identifier ?? "nothing has gone wrong"}
          />
        </SimpleGrid>
        <Switch
          label="News for operators too, such as starts and updates"
          checked={withNews}
          onChange={({ currentTarget }) => setWithNews(currentTarget.checked)}
        />
        <AlertGroups
          read={read}
          groups={items && groupsOf(withNews ? items : items.filter(({ level }) => level !== "ops"))}
          meanings={meanings.data?.items ?? []}
        />
      </Stack>
    </>
  );
}
