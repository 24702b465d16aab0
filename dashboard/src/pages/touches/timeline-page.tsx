import { Anchor, Code, Grid, Stack, Table, Text } from "@mantine/core";
import { Link, useParams } from "@tanstack/react-router";
import { useRead } from "../../api/index.ts";
import {
  addressText,
  ChannelMark,
  EmptyState,
  ErrorState,
  JsonView,
  LiveIndicator,
  LoadingState,
  PageHeader,
  Panel,
  PersonLink,
  StateBadge,
  Time,
} from "../../parts/index.ts";
import { Moments } from "./moments.tsx";
import styles from "./stations.module.css";
import { Stations } from "./stations.tsx";
import type { Timeline } from "./steps.ts";

/** One touch, from queued to clicked, as it happens. */
export function Page() {
  const { uid } = useParams({ strict: false }) as { readonly uid: string };
  const read = useRead("/api/1/admin/touches/{uid}", { path: { uid } }, { every: 2 });
  const timeline = read.data?.uid === uid ? read.data : undefined;
  return (
    <>
      <PageHeader title="Touch" actions={<LiveIndicator of={[read]} />}>
        <Code>{uid}</Code>
      </PageHeader>
      {timeline ? (
        <Stack gap="md">
          <Panel>
            <Stations timeline={timeline} />
          </Panel>
          <Grid gap="md">
            <Grid.Col span={{ base: 12, lg: 7 }}>
              <Moments timeline={timeline} />
            </Grid.Col>
            <Grid.Col span={{ base: 12, lg: 5 }}>
              <Stack gap="md">
                <Subject timeline={timeline} />
                <Arrivals timeline={timeline} />
              </Stack>
            </Grid.Col>
          </Grid>
        </Stack>
      ) : read.error ? (
        <ErrorState error={read.error} retry={() => void read.refetch()} />
      ) : (
        <LoadingState lines={8} />
      )}
    </>
  );
}

function Subject({ timeline: { subject, state, pending, codes } }: { readonly timeline: Timeline }) {
  return (
    <Panel title="Who is told what">
      <Table layout="fixed" withRowBorders={false} aria-label="About the touch">
        <Table.Tbody>
          <Table.Tr>
            <Table.Th w="34%">State</Table.Th>
            <Table.Td>
              <StateBadge state={state} />{" "}
              {pending && (
                <Text span size="xs" c="dimmed">
                  its end is waited for
                </Text>
              )}
            </Table.Td>
          </Table.Tr>
          {subject && (
            <>
              <Table.Tr>
                <Table.Th>Person</Table.Th>
                <Table.Td>
                  <PersonLink person={{ ...subject, sub: subject.user_sub }} />
                </Table.Td>
              </Table.Tr>
              <Table.Tr>
                <Table.Th>Channel</Table.Th>
                <Table.Td>
                  <ChannelMark channel={subject.channel} />
                </Table.Td>
              </Table.Tr>
              <Table.Tr>
                <Table.Th>Touch point</Table.Th>
                <Table.Td>{subject.event_slug ?? "gone"}</Table.Td>
              </Table.Tr>
            </>
          )}
          {codes.length > 0 && (
            <Table.Tr>
              <Table.Th>Links</Table.Th>
              <Table.Td>
                {codes.map((code) => (
                  <Anchor key={code} component={Link} to="/links" search={{ code } as never} size="sm" display="block">
                    {code}
                  </Anchor>
                ))}
              </Table.Td>
            </Table.Tr>
          )}
        </Table.Tbody>
      </Table>
      {subject?.event_parameters && (
        <Stack gap={4} mt="sm">
          <Text size="sm" fw={600}>
            Parameters
          </Text>
          <JsonView value={subject.event_parameters} maxHeight={220} />
        </Stack>
      )}
    </Panel>
  );
}

function Arrivals({ timeline: { arrivals } }: { readonly timeline: Timeline }) {
  return (
    <Panel title="Where it arrived">
      {arrivals.length === 0 ? (
        <EmptyState title="Nowhere yet">Written down as soon as a provider says so.</EmptyState>
      ) : (
        <Stack gap="md">
          {arrivals.map(({ destination, message, created_at }) => (
            <Stack key={`${destination} ${created_at}`} gap={4}>
              <Text size="sm" fw={600}>
                {addressText(destination)}
              </Text>
              <Text size="xs" c="dimmed" component="div">
                <Time at={created_at} as="moment" />
              </Text>
              <Words message={message} />
            </Stack>
          ))}
        </Stack>
      )}
    </Panel>
  );
}

/** What somebody read; the parameters of a mail's template below its subject. */
function Words({ message }: { readonly message: Readonly<Record<string, unknown>> }) {
  const { title, body, subject, ...rest } = message;
  const lines = [title, subject, body].filter((line) => typeof line === "string");
  return (
    <>
      {lines.map((line) => (
        <Text key={line} size="sm" className={styles.words}>
          {line}
        </Text>
      ))}
      {(lines.length === 0 || subject !== undefined) && <JsonView value={rest} maxHeight={200} />}
    </>
  );
}
