import { Anchor, Code, Stack, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import type { Read } from "../../api/index.ts";
import {
  ConfirmButton,
  counted,
  DataTable,
  durationText,
  EmptyState,
  JsonView,
  Panel,
  StateBadge,
  Time,
} from "../../parts/index.ts";
import type { Family } from "./families.ts";

interface FamiliesTableProps {
  readonly families: readonly Family[] | undefined;
  readonly read: Pick<Read<unknown>, "error" | "refetch">;
  readonly onRotate: (family: Family) => void;
}

/** Every family that is declared, whoever declared it; its name leads to its charts. */
export function FamiliesTable({ families, read, onRotate }: FamiliesTableProps) {
  return (
    <Panel title="Families" description="A finished day is moved to SQL in the first hours of the next one">
      <DataTable
        caption="Families of statistics with their health"
        rows={families}
        read={read}
        keyOf={({ name }) => name}
        expect={12}
        empty={<EmptyState title="Nothing is counted here">No room declares statistics.</EmptyState>}
        columns={[
          { title: "Family", cell: (family) => <FamilyName family={family} /> },
          { title: "State", cell: (family) => <Lateness family={family} />, sortBy: ({ days_late }) => days_late },
          {
            title: "Open since",
            cell: ({ earliest }) => earliest ?? "–",
            sortBy: ({ earliest }) => earliest ?? "",
          },
          {
            title: "Last rotation",
            cell: ({ last_rotation }) => <Rotation of={last_rotation} never="never" />,
            sortBy: ({ last_rotation }) => last_rotation?.at ?? 0,
          },
          {
            title: "Last mismatch",
            cell: ({ last_mismatch }) => <Rotation of={last_mismatch} never="none" />,
            sortBy: ({ last_mismatch }) => last_mismatch?.at ?? 0,
          },
          {
            title: "Rotate",
            isActions: true,
            align: "right",
            cell: (family) => (
              <ConfirmButton
                question="Finished days are moved to SQL now rather than at the next full hour. Days that may still change stay where they are."
                confirm="Rotate now"
                label={`Rotate: ${family.title}`}
                onConfirm={() => onRotate(family)}
              >
                Rotate
              </ConfirmButton>
            ),
          },
        ]}
        detail={({ name, earliest, days_late, last_rotation, last_mismatch }) => (
          <JsonView value={{ name, earliest, days_late, last_rotation, last_mismatch }} />
        )}
      />
    </Panel>
  );
}

function FamilyName({ family: { name, title } }: { readonly family: Family }) {
  return (
    <Stack gap={2} align="flex-start">
      <Anchor component={Link} to={`/data-health/${encodeURIComponent(name)}`} fw={600} fz="inherit">
        {title}
      </Anchor>
      <Code fz="xs">{name}</Code>
    </Stack>
  );
}

function Lateness({ family: { days_late, earliest } }: { readonly family: Family }) {
  if (days_late > 0)
    return (
      <StateBadge
        state="late"
        tone={days_late > 1 ? "bad" : "warn"}
        label={`${counted(days_late, "day", "days")} late`}
      />
    );
  return <StateBadge state={earliest === null ? "never" : "ok"} label={earliest === null ? "not begun" : "in time"} />;
}

function Rotation({ of, never }: { readonly of: Family["last_rotation"]; readonly never: string }) {
  if (of === null) return never;
  const took = typeof of.duration_ms === "number" ? `, took ${durationText(of.duration_ms / 1000)}` : "";
  return (
    <Stack gap={2}>
      <span>{of.retrieved_for}</span>
      <Text size="xs" c="dimmed" component="span">
        <Time at={of.at} />
        {of.finished === false ? ", not finished" : took}
      </Text>
    </Stack>
  );
}
