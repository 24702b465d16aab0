import { Accordion, Anchor, Code, Group, Text, TextInput } from "@mantine/core";
import { IconSearch } from "@tabler/icons-react";
import { useState } from "react";
import type { Answer, Read } from "../../api/index.ts";
import {
  DataTable,
  durationText,
  EmptyState,
  ErrorState,
  LoadingState,
  Num,
  numberText,
  Panel,
} from "../../parts/index.ts";
import type { Audit } from "./audit-panel.tsx";
import { weightsOf } from "./weights.tsx";

type Declared = Answer<"get", "/api/1/admin/keys">;
type Pattern = Declared["items"][number];

interface FamiliesProps {
  readonly declared: Read<Declared>;
  readonly audit: Audit | undefined;
  readonly onExplore: (name: string) => void;
}

/** The tree of everything that is declared: families, and in each its patterns. */
export function Families({ declared, audit, onExplore }: FamiliesProps) {
  const [sought, setSought] = useState("");
  const [open, setOpen] = useState<string[]>([]);
  const words = sought.trim().toLowerCase();
  const fits = ({ pattern, doc, family, domain }: Pattern) =>
    `${pattern} ${doc} ${family} ${domain}`.toLowerCase().includes(words);
  const families = new Map<string, Pattern[]>();
  for (const item of declared.data?.items.filter(fits) ?? [])
    families.set(item.family, [...(families.get(item.family) ?? []), item]);
  const weights = new Map(weightsOf(audit?.patterns ?? []).map((weight) => [weight.family, weight]));
  const usage = new Map(audit?.patterns.map((each) => [each.pattern, each]));
  // Whoever looks for something wants to see it, not the families that it is in.
  const shown = words === "" ? open : [...families.keys()];
  return (
    <Panel
      title="Families"
      description="Scripts change keys of one family at a time; on a Redis Cluster a family shares a slot"
    >
      <TextInput
        aria-label="Find a pattern"
        placeholder="Find a pattern or a meaning"
        leftSection={<IconSearch size={16} aria-hidden />}
        value={sought}
        onChange={({ currentTarget }) => setSought(currentTarget.value)}
        mb="sm"
        type="search"
      />
      {declared.error && !declared.data && <ErrorState error={declared.error} retry={() => void declared.refetch()} />}
      {!declared.data && !declared.error && <LoadingState lines={10} height={26} />}
      {declared.data && families.size === 0 && (
        <EmptyState title="No pattern fits">Look for a part of a key's name, or a word of its meaning.</EmptyState>
      )}
      <Accordion multiple value={shown} onChange={setOpen} chevronPosition="left" keepMounted={false}>
        {[...families].map(([family, patterns]) => {
          const weight = weights.get(family);
          return (
            <Accordion.Item key={family} value={family}>
              <Accordion.Control>
                <Group justify="space-between" gap="xs">
                  <Text fw={600}>{family}</Text>
                  <Text size="sm" c="dimmed">
                    {patterns.length === 1 ? "1 pattern" : `${patterns.length} patterns`}
                    {weight && `, ${numberText(weight.keys)} keys, ${numberText(weight.bytes, "bytes")}`}
                  </Text>
                </Group>
              </Accordion.Control>
              <Accordion.Panel>
                <DataTable
                  caption={`Patterns of ${family}`}
                  rows={patterns}
                  keyOf={({ kind, pattern }) => `${kind} ${pattern}`}
                  empty={null}
                  columns={[
                    {
                      title: "Pattern",
                      cell: ({ pattern }) => (
                        <Anchor component="button" type="button" ta="left" onClick={() => onExplore(pattern)}>
                          <Code fz="sm">{pattern}</Code>
                        </Anchor>
                      ),
                    },
                    { title: "Meaning", cell: ({ doc }) => <Text size="sm">{doc}</Text> },
                    { title: "Type", cell: ({ type }) => type },
                    { title: "Expires", cell: ({ ttl, kind }) => (kind === "channel" ? "–" : expiryText(ttl)) },
                    {
                      title: "Keys",
                      align: "right",
                      cell: ({ pattern }) => <Num value={audit ? (usage.get(pattern)?.keys ?? 0) : null} />,
                      sortBy: ({ pattern }) => usage.get(pattern)?.keys ?? 0,
                    },
                    {
                      title: "Memory",
                      align: "right",
                      cell: ({ pattern }) => <Num value={audit ? (usage.get(pattern)?.bytes ?? 0) : null} as="bytes" />,
                      sortBy: ({ pattern }) => usage.get(pattern)?.bytes ?? 0,
                    },
                  ]}
                />
              </Accordion.Panel>
            </Accordion.Item>
          );
        })}
      </Accordion>
    </Panel>
  );
}

function expiryText(ttl: Pattern["ttl"]): string {
  if (ttl === null) return "never";
  return typeof ttl === "number" ? `within ${durationText(ttl)}` : ttl;
}
