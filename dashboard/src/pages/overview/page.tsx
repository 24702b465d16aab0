import { Grid, SimpleGrid, Stack } from "@mantine/core";
import {
  CALM,
  CHANNELS,
  countOf,
  FAMILIES,
  LIVE,
  outcomesOf,
  rowsOf,
  todayOf,
  useDays,
  useRead,
  useToday,
} from "../../api/index.ts";
import { useNow } from "../../app/clock.ts";
import { SERIES } from "../../app/theme.ts";
import {
  ChartCard,
  counted,
  durationText,
  LiveIndicator,
  LoadingState,
  Num,
  numberText,
  PageHeader,
  StatTile,
} from "../../parts/index.ts";
import { ChannelsToday } from "./channels-today.tsx";
import { LatestMessages } from "./latest-messages.tsx";
import { QueuesPanel, useQueues } from "./queues.tsx";
import { RecentAlerts, WorkersPanel } from "./watch.tsx";
import { Welcome } from "./welcome.tsx";

const DAY = 86_400;
const ALIVE = 30;

export function Page() {
  const { today, reads } = useToday(FAMILIES);
  const days = useDays(FAMILIES);
  const queues = useQueues();
  const workers = useRead("/api/1/admin/jobs/workers", undefined, { every: LIVE });
  const alerts = useRead("/api/1/admin/alerts", undefined, { every: CALM });
  const sandbox = useRead("/api/1/admin/sandbox");
  const isSimulated = sandbox.data?.can_open ?? false;
  const now = useNow(5);

  const channels = todayOf(today);
  const isKnown = reads.every(({ isSuccess }) => isSuccess);
  const sum = (of: "sent" | "delivered" | "failed") => channels.reduce((total, channel) => total + channel[of], 0);
  const sent = sum("sent");
  const ended = sum("delivered") + sum("failed");
  const waiting = queues.rows?.reduce((total, { waiting: length }) => total + length, 0);
  const oldest = Math.min(...(queues.rows ?? []).flatMap(({ oldestAt }) => oldestAt ?? []));
  const alive = workers.data?.items.filter(({ heartbeat_age }) => heartbeat_age < ALIVE);
  const recent = alerts.data?.items.filter(({ occurred_at, level }) => occurred_at > now - DAY && level !== "ops");
  const serious = recent?.filter(({ level }) => level !== "warning").length ?? 0;
  const failures = sum("failed");

  // What stands above everything else is known first, so that nothing moves.
  if (sandbox.isPending) return <LoadingState lines={12} height={28} />;
  return (
    <>
      <PageHeader title="Overview" actions={<LiveIndicator of={[...reads, ...queues.reads, workers]} />}>
        What was sent today, what became of it, and whether everything keeps up.
      </PageHeader>
      <Stack gap="md">
        {isSimulated && <Welcome />}
        <SimpleGrid cols={{ base: 2, sm: 4 }} spacing={{ base: "xs", sm: "md" }}>
          <StatTile
            label="Sent today"
            value={isKnown ? <Num value={sent} /> : undefined}
            note="to providers, all channels"
          />
          <StatTile
            label="Delivered today"
            value={isKnown ? <Num value={sum("delivered")} /> : undefined}
            note={
              ended === 0 ? "no outcomes yet" : `${numberText(sum("delivered") / ended, "percent")} of known outcomes`
            }
          />
          <StatTile
            label="Failed today"
            value={isKnown ? <Num value={failures} /> : undefined}
            note={failures === 0 ? "nothing was given up" : "given up, bounced or refused"}
            tone={failures > 0 ? "bad" : "neutral"}
          />
          <StatTile
            label="Clicks today"
            value={isKnown ? <Num value={clicksOf(today.touch_links)} /> : undefined}
            note="on links in messages"
            to="/links"
          />
          <StatTile
            label="Reminders today"
            value={isKnown ? <Num value={countOf(today.daily_reminders, "sent")} /> : undefined}
            note={`${numberText(countOf(today.daily_reminders, "time_assigned"))} planned`}
            to="/reminders"
          />
          <StatTile
            label="Waiting"
            value={waiting === undefined ? undefined : <Num value={waiting} />}
            note={
              Number.isFinite(oldest) ? `oldest for ${durationText(Math.max(0, now - oldest))}` : "all queues are empty"
            }
            tone={Number.isFinite(oldest) && now - oldest > 600 ? "warn" : "neutral"}
          />
          <StatTile
            label="Workers"
            value={alive === undefined ? undefined : <Num value={alive.length} />}
            note={
              alive?.length === 0
                ? "nobody runs jobs"
                : counted(
                    alive?.reduce((all, { running }) => all + running.length, 0) ?? 0,
                    "job running",
                    "jobs running",
                  )
            }
            tone={alive?.length === 0 ? "bad" : "neutral"}
            to="/jobs"
          />
          <StatTile
            label="Alerts, 24 hours"
            value={recent === undefined ? undefined : <Num value={recent.length} />}
            note={
              recent?.length === 0
                ? "nothing went wrong"
                : serious > 0
                  ? `${serious} of them serious`
                  : "none of them serious"
            }
            tone={serious > 0 ? "bad" : (recent?.length ?? 0) > 0 ? "warn" : "neutral"}
            to="/alerts"
          />
        </SimpleGrid>
        <Grid gap="md">
          <Grid.Col span={{ base: 12, lg: 7 }}>
            <ChartCard
              title={`Messages over ${days.span}`}
              description="Handed to providers, by channel"
              read={days.read}
              open={days.open(...CHANNELS.map(({ sends }) => sends))}
              rows={rowsOf(
                days.labels,
                Object.fromEntries(
                  CHANNELS.map(({ name, sends, sent: events }) => [name, days.series(sends, ...events)]),
                ),
              )}
              series={CHANNELS.map(({ name, label }) => ({ name, label, color: SERIES[name] }))}
            />
          </Grid.Col>
          <Grid.Col span={{ base: 12, lg: 5 }}>
            <LatestMessages isSimulated={isSimulated} />
          </Grid.Col>
          <Grid.Col span={{ base: 12, lg: 7 }}>
            <ChartCard
              title={`Outcomes over ${days.span}`}
              description="What providers told of messages, all channels"
              read={days.read}
              open={days.open(...CHANNELS.flatMap(({ sends, ends }) => [sends, ends]))}
              rows={rowsOf(days.labels, allOutcomes(days.series))}
              series={[
                { name: "delivered", label: "Delivered", color: SERIES.good },
                { name: "failed", label: "Failed", color: SERIES.bad },
              ]}
            />
          </Grid.Col>
          <Grid.Col span={{ base: 12, lg: 5 }}>
            <ChannelsToday channels={isKnown ? channels : undefined} />
          </Grid.Col>
          <Grid.Col span={{ base: 12, lg: 7 }}>
            <QueuesPanel queues={queues} />
          </Grid.Col>
          <Grid.Col span={{ base: 12, lg: 5 }}>
            <ChartCard
              title={`Clicks and reminders over ${days.span}`}
              description="Clicks on links, reminders sent"
              type="lines"
              read={days.read}
              open={days.open("touch_links", "daily_reminders")}
              rows={rowsOf(days.labels, {
                clicks: days.series("touch_links", ...CLICKS),
                reminders: days.series("daily_reminders", "sent"),
              })}
              series={[
                { name: "clicks", label: "Clicks", color: SERIES.click },
                { name: "reminders", label: "Reminders", color: SERIES.sms },
              ]}
            />
          </Grid.Col>
          <Grid.Col span={{ base: 12, lg: 7 }}>
            <WorkersPanel read={workers} />
          </Grid.Col>
          <Grid.Col span={{ base: 12, lg: 5 }}>
            <RecentAlerts read={alerts} />
          </Grid.Col>
        </Grid>
      </Stack>
    </>
  );
}

const CLICKS = ["clicks_buffered", "clicks_direct_to_db", "clicks_delayed"] as const;
const clicksOf = (counts: Readonly<Record<string, unknown>> | undefined) => countOf(counts, ...CLICKS);

/** Of all channels together. */
function allOutcomes(series: ReturnType<typeof useDays<(typeof FAMILIES)[number]>>["series"]) {
  const each = CHANNELS.map((channel) => outcomesOf(channel, series));
  const total = (of: "delivered" | "failed") =>
    (each[0]?.[of] ?? []).map((_, day) => each.reduce((sum, outcomes) => sum + (outcomes[of][day] ?? 0), 0));
  return { delivered: total("delivered"), failed: total("failed") };
}
