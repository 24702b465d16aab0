import { SimpleGrid, Stack } from "@mantine/core";
import { IconStethoscope } from "@tabler/icons-react";
import { useState } from "react";
import { LIVE, useChange, useRead } from "../../api/index.ts";
import {
  ConfirmButton,
  counted,
  JobProgress,
  LiveIndicator,
  Num,
  numberText,
  PageHeader,
  Panel,
  StatTile,
  Time,
} from "../../parts/index.ts";
import { type Declared, familiesOf } from "./families.ts";
import { FamiliesTable } from "./families-table.tsx";

const HEALTH = "/api/1/admin/stats/health";
const REFRESHES = [HEALTH];

/** A job that somebody started here. */
interface Started {
  readonly title: string;
  readonly uid: string;
}

export function Page() {
  const health = useRead(HEALTH, undefined, { every: LIVE });
  const declared = useRead("/api/1/admin/stats");
  const [started, setStarted] = useState<Started>();
  const rotate = useChange("post", "/api/1/admin/stats/{family}/rotate");
  const repair = useChange("post", "/api/1/admin/stats/repair");
  const families = health.data && familiesOf(health.data, declared.data?.items as readonly Declared[] | undefined);
  const late = families?.filter(({ days_late }) => days_late > 0) ?? [];
  const latest = Math.max(0, ...late.map(({ days_late }) => days_late));
  const unequal = families?.filter(({ last_mismatch }) => last_mismatch !== null) ?? [];
  const rotated = Math.max(0, ...(families ?? []).map(({ last_rotation }) => last_rotation?.at ?? 0));
  const waiting = health.data?.deltas_waiting;
  return (
    <>
      <PageHeader
        title="Data health"
        actions={
          <>
            <LiveIndicator of={[health]} />
            <ConfirmButton
              question="Only after Redis lost its data: every family goes on after its last day in SQL, and the days that were lost become zeros. Where nothing was lost, it changes nothing."
              confirm="Repair it"
              size="sm"
              leftSection={<IconStethoscope size={16} aria-hidden />}
              loading={repair.isPending}
              onConfirm={() =>
                repair.mutate({}, { onSuccess: ({ job_uid }) => setStarted({ title: "Repair", uid: job_uid }) })
              }
            >
              Repair
            </ConfirmButton>
          </>
        }
      >
        Counts begin in Redis and end in SQL, day by day. This is how far each family is, and whether its numbers
        agreed.
      </PageHeader>
      <Stack gap="md">
        <SimpleGrid cols={{ base: 2, sm: 4 }} spacing={{ base: "xs", sm: "md" }}>
          <StatTile
            label="Late families"
            value={families && <Num value={late.length} />}
            note={
              late.length === 0
                ? `all ${numberText(families?.length ?? 0)} are where they should be`
                : `the latest by ${counted(latest, "day", "days")}`
            }
            tone={latest > 1 ? "bad" : latest > 0 ? "warn" : "neutral"}
          />
          <StatTile
            label="Mismatches"
            value={families && <Num value={unequal.length} />}
            note={unequal.length === 0 ? "all sums agreed, 30 days" : "families with one, 30 days"}
            tone={unequal.length > 0 ? "warn" : "neutral"}
          />
          <StatTile
            label="Counts waiting"
            value={waiting === undefined ? undefined : <Num value={waiting} />}
            note={waiting === 0 ? "everything stored is counted" : "stored, and counted within a minute"}
          />
          <StatTile
            label="Last rotation"
            value={families && <Time at={rotated || null} />}
            note="a day of a family, from Redis to SQL"
          />
        </SimpleGrid>
        {started && (
          <Panel title={started.title} description="What the job tells, as it goes">
            <JobProgress key={started.uid} uid={started.uid} refreshes={REFRESHES} />
          </Panel>
        )}
        <FamiliesTable
          families={families}
          read={health}
          onRotate={({ name, title }) =>
            rotate.mutate(
              { path: { family: name } },
              { onSuccess: ({ job_uid }) => setStarted({ title: `Rotation: ${title}`, uid: job_uid }) },
            )
          }
        />
      </Stack>
    </>
  );
}
