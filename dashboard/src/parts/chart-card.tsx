import { ActionIcon, Box, Group, Skeleton, Tooltip } from "@mantine/core";
import { IconChartBar, IconTable } from "@tabler/icons-react";
import { lazy, type ReactNode, Suspense, useState } from "react";
import type { Read } from "../api/reads.ts";
import { useStatisticsTimezone } from "../api/session.ts";
import { dateIn } from "../api/statistics.ts";
import styles from "./chart-card.module.css";
import { DataTable } from "./data-table.tsx";
import { numberText } from "./figures.tsx";
import { Panel } from "./page-header.tsx";
import { EmptyState, ErrorState } from "./states.tsx";

/** The library that draws is heavy: pages stand before it is there. It comes while they ask for numbers. */
const drawing = import("./drawing.tsx");
const Drawing = lazy(() => drawing);

export interface ChartSeries {
  /** The field of each row that holds its numbers. */
  readonly name: string;
  readonly label: string;
  /** One of `SERIES` of the theme. */
  readonly color: string;
  /** A level that stays from day to day, whose days must not be added up: the latest is told. */
  readonly isLevel?: boolean;
}

export type ChartRow = { readonly label: string } & Readonly<Record<string, number | string>>;

export interface ChartCardProps {
  readonly title: string;
  readonly description?: ReactNode;
  /** A row a day (or whatever `label` names); undefined while it loads. */
  readonly rows: readonly ChartRow[] | undefined;
  readonly series: readonly ChartSeries[];
  /** `stacked` for parts of a whole, `lines` for what is compared. */
  readonly type?: "stacked" | "lines";
  readonly height?: number;
  readonly read?: Pick<Read<unknown>, "error" | "refetch">;
  /** What stands there when all numbers are zero. */
  readonly empty?: ReactNode;
}

/**
 * A chart with its legend and totals; the same numbers stand in a table for whoever does not see it. A day that is not
 * over counts less than it will, so that today stands apart from the curve, as a mark of what there is so far.
 */
export function ChartCard({
  title,
  description,
  rows,
  series,
  type = "stacked",
  height = 240,
  read,
  empty,
}: ChartCardProps) {
  const [asTable, setAsTable] = useState(false);
  const today = dateIn(useStatisticsTimezone());
  const isOpen = rows?.at(-1)?.label === today;
  const totals = series.map(({ name, isLevel }) =>
    (isLevel ? (rows ?? []).slice(-1) : (rows ?? [])).reduce((sum, row) => sum + Number(row[name] ?? 0), 0),
  );
  const isEmpty = rows !== undefined && totals.every((total) => total === 0);
  const summary = series.map(({ label }, index) => `${label} ${numberText(totals[index]!)}`).join(", ");
  const toggle = (
    <Tooltip label={asTable ? "Show the chart" : "Show the numbers"}>
      <ActionIcon
        variant="subtle"
        color="gray"
        aria-label={asTable ? `${title}: show the chart` : `${title}: show the numbers as a table`}
        onClick={() => setAsTable(!asTable)}
      >
        {asTable ? <IconChartBar size={18} /> : <IconTable size={18} />}
      </ActionIcon>
    </Tooltip>
  );
  const told =
    isOpen && !isEmpty && !asTable ? (
      <>
        {description}
        {description && ". "}
        <span className={styles.open} aria-hidden /> is today so far
      </>
    ) : (
      description
    );
  return (
    <Panel title={title} description={told} actions={toggle} h="100%">
      <Group gap="md" mb="sm" mih={22}>
        {series.map(({ name, label, color }, index) => (
          <span key={name} className={styles.legend}>
            <Box component="span" className={styles.swatch} bg={color} />
            {label}
            <b>{rows === undefined ? "" : numberText(totals[index]!, "short")}</b>
          </span>
        ))}
      </Group>
      <Box
        className={styles.room}
        mih={height}
        tabIndex={asTable ? 0 : undefined}
        role={asTable ? "region" : undefined}
        aria-label={asTable ? `${title}, as a table` : undefined}
      >
        <div className={styles.filling}>
          {rows === undefined ? (
            read?.error ? (
              <ErrorState error={read.error} retry={() => void read.refetch()} />
            ) : (
              <Skeleton h="100%" />
            )
          ) : isEmpty ? (
            (empty ?? (
              <EmptyState title="Nothing to count yet">Numbers appear here as soon as there are any.</EmptyState>
            ))
          ) : asTable ? (
            <Numbers title={title} rows={rows} series={series} today={today} />
          ) : (
            <div role="img" aria-label={`${title}. ${rows.length} days: ${summary}.`} className={styles.drawing}>
              <Suspense fallback={<Skeleton h="100%" />}>
                <Drawing rows={rows} series={series} type={type} isOpen={isOpen} />
              </Suspense>
            </div>
          )}
        </div>
      </Box>
    </Panel>
  );
}

function Numbers({
  title,
  rows,
  series,
  today,
}: Pick<ChartCardProps, "title" | "series"> & { readonly rows: readonly ChartRow[]; readonly today: string }) {
  return (
    <DataTable
      caption={title}
      rows={[...rows].reverse()}
      keyOf={({ label }) => label}
      empty={null}
      columns={[
        { title: "Day", cell: ({ label }) => (label === today ? `${label}, so far` : label) },
        ...series.map(({ name, label }) => ({
          title: label,
          align: "right" as const,
          cell: (row: ChartRow) => numberText(Number(row[name] ?? 0)),
        })),
      ]}
    />
  );
}
