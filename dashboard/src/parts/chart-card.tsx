import { ActionIcon, Box, Group, Skeleton, Tooltip } from "@mantine/core";
import { IconChartBar, IconDownload, IconTable } from "@tabler/icons-react";
import { lazy, type ReactNode, Suspense, useState } from "react";
import type { Read } from "../api/reads.ts";
import styles from "./chart-card.module.css";
import { type ChartRow, type ChartSeries, openNote, tableOf } from "./chart-rows.ts";
import { csvName, csvOf } from "./csv.ts";
import { DataTable } from "./data-table.tsx";
import { numberText } from "./figures.tsx";
import { Panel } from "./page-header.tsx";
import { EmptyState, ErrorState } from "./states.tsx";

/** The library that draws is heavy: pages stand before it is there. It comes while they ask for numbers. */
const drawing = import("./drawing.tsx");
const Drawing = lazy(() => drawing);

export interface ChartCardProps {
  readonly title: string;
  readonly description?: ReactNode;
  /** A row a day, today last; undefined while it loads. */
  readonly rows: readonly ChartRow[] | undefined;
  /** So many of the last days may still change. */
  readonly open: number;
  readonly series: readonly ChartSeries[];
  /** What the last series has together, where it is several: the file tells them one by one. */
  readonly folded?: readonly ChartSeries[];
  /** `stacked` for parts of a whole, `lines` for what is compared. */
  readonly type?: "stacked" | "lines";
  readonly height?: number;
  readonly read?: Pick<Read<unknown>, "error" | "refetch">;
  /** What stands there when all numbers are zero. */
  readonly empty?: ReactNode;
}

/**
 * A chart with its legend and totals; the same numbers stand in a table for whoever does not see it, and in a file. A day
 * that may still change counts less than it will, so that such days have a lighter shade, and today ends in a ring.
 */
export function ChartCard({
  title,
  description,
  rows,
  open,
  series,
  folded = [],
  type = "stacked",
  height = 240,
  read,
  empty,
}: ChartCardProps) {
  const [asTable, setAsTable] = useState(false);
  const totals = series.map(({ name, isLevel }) => {
    const numbers = (rows ?? []).flatMap((row) => (row[name] === undefined ? [] : Number(row[name])));
    return isLevel ? (numbers.at(-1) ?? 0) : numbers.reduce((sum, number) => sum + number, 0);
  });
  const isEmpty = rows !== undefined && totals.every((total) => total === 0);
  const summary = series.map(({ label }, index) => `${label} ${numberText(totals[index]!)}`).join(", ");
  const actions = (
    <>
      {rows && !isEmpty && (
        <Tooltip label="Download as CSV">
          <ActionIcon
            variant="subtle"
            color="gray"
            aria-label={`${title}: download as CSV`}
            onClick={() => download(title, csvOf(tableOf({ rows, series, folded, open })))}
          >
            <IconDownload size={18} />
          </ActionIcon>
        </Tooltip>
      )}
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
    </>
  );
  const told =
    open > 0 && rows !== undefined && !isEmpty && !asTable ? (
      <>
        {description}
        {description && ". "}
        <span className={styles.note}>
          <span className={styles.light} aria-hidden /> not final,
        </span>{" "}
        <span className={styles.note}>
          <span className={styles.open} aria-hidden /> today so far
        </span>
      </>
    ) : (
      description
    );
  return (
    <Panel title={title} description={told} actions={actions} h="100%">
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
            <Numbers title={title} rows={rows} series={series} open={open} />
          ) : (
            <div role="img" aria-label={`${title}. ${rows.length} days: ${summary}.`} className={styles.drawing}>
              <Suspense fallback={<Skeleton h="100%" />}>
                <Drawing rows={rows} series={series} type={type} open={open} />
              </Suspense>
            </div>
          )}
        </div>
      </Box>
    </Panel>
  );
}

interface NumbersProps extends Pick<ChartCardProps, "title" | "series" | "open"> {
  readonly rows: readonly ChartRow[];
}

function Numbers({ title, rows, series, open }: NumbersProps) {
  const noted = rows.map((row, at) => ({ row, note: openNote(at, rows.length, open) }));
  return (
    <DataTable
      caption={title}
      rows={noted.reverse()}
      keyOf={({ row }) => row.label}
      empty={null}
      columns={[
        { title: "Day", cell: ({ row: { label }, note }) => (note ? `${label}, ${note}` : label) },
        ...series.map(({ name, label }) => ({
          title: label,
          align: "right" as const,
          cell: ({ row }: { readonly row: ChartRow }) =>
            row[name] === undefined ? "–" : numberText(Number(row[name])),
        })),
      ]}
    />
  );
}

function download(title: string, csv: string): void {
  const url = URL.createObjectURL(new Blob([csv], { type: "text/csv;charset=utf-8" }));
  const link = Object.assign(document.createElement("a"), { href: url, download: csvName(title) });
  link.click();
  URL.revokeObjectURL(url);
}
