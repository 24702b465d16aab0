import { Button, Group, Select, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { IconCircleCheck, IconSearch, IconX } from "@tabler/icons-react";
import { type ReactNode, useState } from "react";
import type { Read } from "../../api/index.ts";
import { type Column, ConfirmButton, DataTable, EmptyState, JsonView, Panel, Time } from "../index.ts";
import { StateBadge } from "../state-badge.tsx";

export const SUPPRESSED_PAGE = 25;

export interface Search<Reason extends string> {
  readonly text: string;
  readonly reason: Reason | undefined;
  readonly after: string | undefined;
}

/** What somebody looks for in a list, page by page; another search begins at its first page. */
export function useSearchOf<Reason extends string>() {
  const [text, setText] = useState("");
  const [reason, setReason] = useState<Reason>();
  const [pages, setPages] = useState<readonly string[]>([]);
  const [wanted] = useDebouncedValue(text.trim(), 300);
  const search: Search<Reason> = { text: wanted, reason, after: pages.at(-1) };
  const anew = <T,>(set: (value: T) => void) => {
    return (value: T) => {
      setPages([]);
      set(value);
    };
  };
  return {
    search,
    text,
    reason,
    isFirst: pages.length === 0,
    setText: anew(setText),
    setReason: anew(setReason),
    older: (next: string) => setPages([...pages, next]),
    newer: () => setPages(pages.slice(0, -1)),
  };
}

interface Suppressed<Reason extends string> {
  readonly uid: string;
  readonly address: string;
  readonly reason: Reason;
  readonly created_at: number;
  readonly detail?: unknown;
}

interface SuppressionsProps<Reason extends string, Row extends Suppressed<Reason>> {
  readonly title: string;
  readonly description: string;
  /** What an address is called here. */
  readonly address: string;
  readonly reasons: Readonly<Record<Reason, string>>;
  readonly find: ReturnType<typeof useSearchOf<Reason>>;
  readonly read: Read<{ readonly next: string | null }>;
  readonly rows: readonly Row[] | undefined;
  readonly columns?: readonly Column<Row>[];
  readonly lift: (uid: string) => void;
  /** The form that adds one, and what else stands above the list. */
  readonly actions: ReactNode;
}

/** Addresses that nothing is sent to, with search, and a way to lift each. */
export function Suppressions<Reason extends string, Row extends Suppressed<Reason>>(
  props: SuppressionsProps<Reason, Row>,
) {
  const { title, description, address, reasons, find, read, rows, columns = [], lift, actions } = props;
  const isSearch = find.search.text !== "" || find.search.reason !== undefined;
  const next = read.data?.next ?? null;
  return (
    <Panel title={title} description={description} actions={actions}>
      <Group gap="sm" mb="md" align="flex-end">
        <TextInput
          label={`Search by ${address}`}
          leftSection={<IconSearch size={16} aria-hidden />}
          value={find.text}
          onChange={(event) => find.setText(event.currentTarget.value)}
          flex={{ base: "1 1 100%", xs: "0 1 320px" }}
        />
        <Select
          label="Reason"
          placeholder="Any"
          clearable
          data={Object.entries<string>(reasons).map(([value, label]) => ({ value, label }))}
          value={find.reason ?? null}
          onChange={(value) => find.setReason((value as Reason | null) ?? undefined)}
          flex={{ base: "1 1 100%", xs: "0 1 240px" }}
        />
      </Group>
      <DataTable
        caption={title}
        rows={rows}
        read={read}
        keyOf={({ uid }) => uid}
        empty={
          isSearch ? (
            <EmptyState title="None found">Nothing fits this search: messages to it are not held back here.</EmptyState>
          ) : (
            <EmptyState title="None is suppressed" icon={<IconCircleCheck size={22} />}>
              People who leave, and addresses that do not work, are listed here.
            </EmptyState>
          )
        }
        columns={[
          { title: sentence(address), cell: (row) => row.address },
          { title: "Reason", cell: ({ reason }) => <StateBadge state={reason} label={reasons[reason]} tone="warn" /> },
          ...columns,
          { title: "Since", align: "right", cell: ({ created_at }) => <Time at={created_at} /> },
          {
            title: "Lift",
            isActions: true,
            cell: ({ uid, address: value }) => (
              <ConfirmButton
                label={`Lift: ${value}`}
                question="Messages go there again from now on. Do this only if its owner wants them."
                confirm="Lift it"
                leftSection={<IconX size={14} aria-hidden />}
                onConfirm={() => lift(uid)}
              >
                Lift
              </ConfirmButton>
            ),
          },
        ]}
        detail={({ uid, detail }) => <JsonView value={{ uid, ...(detail as object) }} />}
      />
      {(!find.isFirst || next !== null) && (
        <Group justify="flex-end" mt="sm">
          <Button variant="default" size="xs" disabled={find.isFirst} onClick={find.newer}>
            Newer
          </Button>
          <Button
            variant="default"
            size="xs"
            disabled={next === null}
            onClick={() => next !== null && find.older(next)}
          >
            Older
          </Button>
        </Group>
      )}
    </Panel>
  );
}

const sentence = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);
