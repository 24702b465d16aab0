import { Group, Progress, Stack, Text, Tooltip } from "@mantine/core";
import { SERIES } from "../../app/theme.ts";
import { numberText, Panel } from "../../parts/index.ts";
import type { Audit } from "./audit-panel.tsx";

const SHOWN = 6;
const COLORS = [SERIES.push, SERIES.sms, SERIES.email, SERIES.click, SERIES.good, SERIES.bad];

interface Weight {
  readonly family: string;
  readonly keys: number;
  readonly bytes: number;
}

export function weightsOf(patterns: Audit["patterns"]): readonly Weight[] {
  const sums = new Map<string, Weight>();
  for (const { family, keys, bytes } of patterns) {
    const sum = sums.get(family);
    sums.set(family, { family, keys: keys + (sum?.keys ?? 0), bytes: bytes + (sum?.bytes ?? 0) });
  }
  return [...sums.values()].sort((one, other) => other.bytes - one.bytes);
}

/** Who takes the memory. */
export function Weights({ audit }: { readonly audit: Audit }) {
  const all = weightsOf(audit.patterns);
  const largest = all.slice(0, SHOWN);
  const rest = audit.bytes - largest.reduce((sum, { bytes }) => sum + bytes, 0);
  const parts = [
    ...largest.map((weight, index) => ({ label: weight.family, bytes: weight.bytes, color: COLORS[index]! })),
    ...(rest > 0 ? [{ label: "others", bytes: rest, color: SERIES.other }] : []),
  ];
  return (
    <Panel title="Memory by family" description="As the last audit weighed it">
      <Stack gap="sm">
        <Progress.Root size={22} radius="sm">
          {parts.map(({ label, bytes, color }) => (
            <Tooltip key={label} label={`${label}: ${numberText(bytes, "bytes")}`}>
              <Progress.Section
                value={audit.bytes === 0 ? 0 : (100 * bytes) / audit.bytes}
                color={color}
                aria-label={`${label}: ${numberText(bytes, "bytes")}`}
              />
            </Tooltip>
          ))}
        </Progress.Root>
        <Group gap="md">
          {parts.map(({ label, bytes, color }) => (
            <Group key={label} gap={6}>
              <span aria-hidden style={{ width: 10, height: 10, borderRadius: 3, background: color }} />
              <Text size="sm">{label}</Text>
              <Text size="sm" fw={600}>
                {numberText(bytes, "bytes")}
              </Text>
            </Group>
          ))}
        </Group>
      </Stack>
    </Panel>
  );
}
