// biome-ignore-all lint/a11y/noRedundantRoles: the layout for phones takes away the roles that elements of a table have by themselves
import { VisuallyHidden } from "@mantine/core";
import { IconChevronDown, IconChevronRight } from "@tabler/icons-react";
import { Fragment, type ReactNode, useState } from "react";
import type { Read } from "../api/reads.ts";
import styles from "./data-table.module.css";
import { ErrorState, LoadingState } from "./states.tsx";

export interface Column<Row> {
  readonly title: string;
  readonly cell: (row: Row) => ReactNode;
  /** Numbers and buttons stand on the right. */
  readonly align?: "left" | "right";
  /** Makes the column one that the table can be sorted by. */
  readonly sortBy?: (row: Row) => number | string;
  /** Buttons: no heading to be seen. */
  readonly isActions?: boolean;
}

interface DataTableProps<Row> {
  /** What the table shows, for readers of screens. */
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[] | undefined;
  readonly keyOf: (row: Row) => string;
  /** The read that the rows come from: its waiting and its failure are shown in place of them. */
  readonly read?: Pick<Read<unknown>, "error" | "refetch">;
  /** What stands there when there are no rows. */
  readonly empty: ReactNode;
  /** More about a row, shown below it when somebody opens it. */
  readonly detail?: (row: Row) => ReactNode;
  /** How many lines hold the place while it loads. */
  readonly expect?: number;
}

/** Rows and columns on wide screens, a card a row on phones. The first column names the row. */
export function DataTable<Row>(props: DataTableProps<Row>) {
  const { caption, columns, rows, keyOf, read, empty, detail, expect = 4 } = props;
  const [open, setOpen] = useState<string>();
  const [order, setOrder] = useState<{ readonly by: number; readonly falling: boolean }>();
  if (!rows) {
    if (read?.error) return <ErrorState error={read.error} retry={() => void read.refetch()} />;
    return <LoadingState lines={expect} height={26} />;
  }
  if (rows.length === 0) return empty;
  const shown = sorted(rows, order && columns[order.by]?.sortBy, order?.falling);
  const sort = (index: number) =>
    setOrder((now) => (now?.by === index ? { by: index, falling: !now.falling } : { by: index, falling: true }));
  return (
    <table className={styles.table} role="table">
      <caption>
        <VisuallyHidden>{caption}</VisuallyHidden>
      </caption>
      <thead role="rowgroup">
        <tr role="row">
          {columns.map((column, index) => {
            const isOrder = order?.by === index;
            return (
              <th
                key={column.title}
                role="columnheader"
                scope="col"
                data-align={column.align}
                aria-sort={isOrder ? (order.falling ? "descending" : "ascending") : undefined}
              >
                {column.isActions ? (
                  <VisuallyHidden>{column.title}</VisuallyHidden>
                ) : column.sortBy ? (
                  <button type="button" className={styles.sort} data-active={isOrder} onClick={() => sort(index)}>
                    {column.title} {isOrder ? (order.falling ? "↓" : "↑") : ""}
                  </button>
                ) : (
                  column.title
                )}
              </th>
            );
          })}
        </tr>
      </thead>
      <tbody role="rowgroup">
        {shown.map((row) => {
          const key = keyOf(row);
          const isOpen = open === key;
          return (
            <Fragment key={key}>
              <tr role="row">
                {columns.map((column, index) => (
                  <td
                    key={column.title}
                    role="cell"
                    data-align={column.align}
                    data-lead={index === 0}
                    data-label={column.isActions ? undefined : column.title}
                  >
                    {index === 0 && detail ? (
                      <div className={styles.lead}>
                        <Toggle isOpen={isOpen} onClick={() => setOpen(isOpen ? undefined : key)} />
                        <div>{column.cell(row)}</div>
                      </div>
                    ) : column.isActions ? (
                      <div className={styles.actions}>{column.cell(row)}</div>
                    ) : (
                      <div>{column.cell(row)}</div>
                    )}
                  </td>
                ))}
              </tr>
              {isOpen && detail && (
                <tr role="row" className={styles.detail}>
                  <td role="cell" colSpan={columns.length}>
                    {detail(row)}
                  </td>
                </tr>
              )}
            </Fragment>
          );
        })}
      </tbody>
    </table>
  );
}

function Toggle({ isOpen, onClick }: { readonly isOpen: boolean; readonly onClick: () => void }) {
  const Icon = isOpen ? IconChevronDown : IconChevronRight;
  return (
    <button type="button" className={styles.toggle} onClick={onClick} aria-expanded={isOpen} aria-label="Details">
      <Icon size={16} aria-hidden />
    </button>
  );
}

function sorted<Row>(
  rows: readonly Row[],
  by: ((row: Row) => number | string) | undefined,
  falling = false,
): readonly Row[] {
  if (!by) return rows;
  const sign = falling ? -1 : 1;
  return [...rows].sort((one, other) => {
    const [a, b] = [by(one), by(other)];
    return a === b ? 0 : (a < b ? -1 : 1) * sign;
  });
}
