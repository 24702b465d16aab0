import { Anchor, Badge, Code, Drawer, Group, List, Stack, Table, Text, Title } from "@mantine/core";
import type { ReactNode } from "react";
import { type Answer, LIVE, useRead } from "../../api/index.ts";
import {
  durationText,
  EmptyState,
  ErrorState,
  JsonView,
  LoadingState,
  numberText,
  StateBadge,
  Time,
} from "../../parts/index.ts";

type Explained = Answer<"get", "/api/1/admin/keys/explain">;
type Known = Extract<Explained, { known: true }>;

interface ExplorerProps {
  /** A key, a channel or a pattern; undefined: none. */
  readonly name: string | undefined;
  readonly onExplore: (name: string | undefined) => void;
}

/** One key: what it means, and what it holds right now. */
export function Explorer({ name, onExplore }: ExplorerProps) {
  return (
    <Drawer
      opened={name !== undefined}
      onClose={() => onExplore(undefined)}
      position="right"
      size="lg"
      title={<Code fz="md">{name}</Code>}
    >
      {name !== undefined && <Inside key={name} name={name} onExplore={onExplore} />}
    </Drawer>
  );
}

function Inside({ name, onExplore }: ExplorerProps & { readonly name: string }) {
  const read = useRead("/api/1/admin/keys/explain", { query: { name } }, { every: LIVE });
  if (read.error && !read.data) return <ErrorState error={read.error} retry={() => void read.refetch()} />;
  if (!read.data || read.isPlaceholderData) return <LoadingState lines={8} />;
  const found = read.data;
  if (!found.known)
    return (
      <Stack gap="md">
        <EmptyState title="Nobody declared such a key">
          {found.near.length > 0 ? "These are most like it:" : "Look for its family in the list."}
        </EmptyState>
        <List>
          {found.near.map(({ pattern, doc }) => (
            <List.Item key={pattern}>
              <Anchor component="button" type="button" onClick={() => onExplore(pattern)}>
                <Code fz="sm">{pattern}</Code>
              </Anchor>
              <Text size="sm" c="dimmed">
                {doc}
              </Text>
            </List.Item>
          ))}
        </List>
      </Stack>
    );
  return (
    <Stack gap="md">
      <Meaning found={found} />
      {found.secret && (
        <Group gap="sm" wrap="nowrap" align="flex-start">
          <StateBadge state="secret" tone="warn" />
          <Text size="sm">
            Its names or values hold secrets or addresses. Only the pattern is shown, here and everywhere.
          </Text>
        </Group>
      )}
      {found.live && <Value live={found.live} />}
      {found.kind === "key" && name === found.pattern && !found.secret && name.includes("{") && (
        <Examples pattern={name} onExplore={onExplore} />
      )}
    </Stack>
  );
}

function Meaning({ found }: { readonly found: Known }) {
  const marks = [
    found.origin === "carillon" && "Carillon's own",
    found.shared && "shared by all families",
    found.cache && "a cache",
  ].filter((mark) => mark !== false);
  const rows: readonly (readonly [string, ReactNode])[] = [
    ["Pattern", <Code key="pattern">{found.pattern}</Code>],
    ...Object.entries(found.parameters ?? {}).map(([name, value]) => [`{${name}}`, value] as const),
    ["Type", found.type],
    ["Value", found.shape],
    ...(found.kind === "key" ? [["Expires", found.ttl] as const] : []),
    ["Family", `${found.family}, of ${found.domain}`],
  ];
  return (
    <div>
      <Text mb="xs">{found.doc}</Text>
      {marks.length > 0 && (
        <Group gap="xs" mb="xs">
          {marks.map((mark) => (
            <Badge key={mark} variant="default" tt="none" fw={500}>
              {mark}
            </Badge>
          ))}
        </Group>
      )}
      <Table aria-label="What is declared" layout="fixed">
        <Table.Tbody>
          {rows.map(([label, value]) => (
            <Table.Tr key={label}>
              <Table.Th w="28%">{label}</Table.Th>
              <Table.Td>{value}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </div>
  );
}

function Value({ live }: { readonly live: NonNullable<Known["live"]> }) {
  if (!live.exists)
    return <EmptyState title="It is not there now">Nothing holds this name in Redis at the moment.</EmptyState>;
  const facts = [
    live.type,
    live.length === null ? undefined : `length ${numberText(live.length)}`,
    numberText(live.bytes, "bytes"),
    live.expires_in === null ? "never expires" : `expires in ${durationText(live.expires_in)}`,
  ];
  return (
    <div>
      <Title order={3} size="h6">
        {live.complete || live.note !== undefined ? "What it holds now" : "What it holds now, in part"}
      </Title>
      <Text size="sm" c="dimmed" mb="xs">
        {facts.filter((fact) => fact !== undefined).join(", ")}
      </Text>
      {live.note !== undefined ? (
        <Text size="sm">{live.note}</Text>
      ) : live.scores && Array.isArray(live.value) ? (
        <Scored members={live.value} scores={live.scores} />
      ) : (
        <JsonView value={live.value} />
      )}
    </div>
  );
}

/** Scores between these are moments: from 2001 to 2096, in seconds. */
const MOMENTS = [1e9, 4e9] as const;

/** The members of a sorted set, the lowest first. */
function Scored({
  members,
  scores,
}: {
  readonly members: readonly unknown[];
  readonly scores: readonly (number | null)[];
}) {
  return (
    <Table aria-label="Members with their scores" layout="fixed">
      <Table.Thead>
        <Table.Tr>
          <Table.Th>Member</Table.Th>
          <Table.Th w="45%">Score</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {members.map((member, at) => {
          const text = typeof member === "string" ? member : JSON.stringify(member);
          const score = scores[at] ?? null;
          return (
            <Table.Tr key={text}>
              <Table.Td>
                <Code>{text}</Code>
              </Table.Td>
              <Table.Td>
                {score ?? "left by now"}
                {score !== null && score > MOMENTS[0] && score < MOMENTS[1] && (
                  <Text size="xs" c="dimmed" component="div">
                    as a moment <Time at={score} />
                  </Text>
                )}
              </Table.Td>
            </Table.Tr>
          );
        })}
      </Table.Tbody>
    </Table>
  );
}

function Examples({ pattern, onExplore }: { readonly pattern: string; readonly onExplore: (name: string) => void }) {
  const read = useRead("/api/1/admin/keys/examples", { query: { pattern } });
  if (read.error) return <ErrorState error={read.error} retry={() => void read.refetch()} />;
  if (!read.data) return <LoadingState lines={3} />;
  const { items, complete } = read.data;
  return (
    <div>
      <Title order={3} size="h6" mb={4}>
        {complete ? "Its keys" : "Some of its keys"}
      </Title>
      {items.length === 0 && (
        <Text size="sm" c="dimmed">
          {complete ? "There is none right now." : "None was found among the first hundred thousand keys."}
        </Text>
      )}
      <List size="sm">
        {items.map((key) => (
          <List.Item key={key}>
            <Anchor component="button" type="button" ta="left" onClick={() => onExplore(key)}>
              <Code fz="sm">{key}</Code>
            </Anchor>
          </List.Item>
        ))}
      </List>
    </div>
  );
}
