import { Button, Code, Group, Stack, Text, Textarea, TextInput } from "@mantine/core";
import { IconCircleCheck, IconRefresh, IconTrash } from "@tabler/icons-react";
import { useState } from "react";
import { LIVE, useChange, useRead } from "../../api/index.ts";
import { ConfirmButton, DataTable, EmptyState, ErrorState, JsonView, LoadingState, Panel, Time } from "../index.ts";
import type { ChannelPlan } from "./plan.ts";

/** An entry that nobody could read, as the server shows it: what came from a secret queue is not read out. */
interface Aside {
  readonly id: string;
  readonly queue: string;
  readonly reason: string;
  readonly quarantined_at: number;
  readonly raw?: string;
  readonly raw_base64?: string;
  readonly withheld?: true;
}

const PATH = "/api/1/admin/quarantine";
const PAGE = 25;

/** What was set aside from the queues of a channel, with the ways out. */
export function Quarantine({ plan }: { readonly plan: ChannelPlan }) {
  const queues = useRead(PATH, undefined, { every: LIVE });
  const own = queues.data?.items.filter(({ queue }) => queue.startsWith(plan.keys));
  if (!own)
    return (
      <Panel title="Quarantine">
        {queues.error ? <ErrorState error={queues.error} retry={() => void queues.refetch()} /> : <LoadingState />}
      </Panel>
    );
  if (own.length === 0)
    return (
      <Panel title="Quarantine" description="Entries of queues that could not be read">
        <EmptyState title="Nothing is set aside" icon={<IconCircleCheck size={22} />}>
          An entry that cannot be read is put here, so that those behind it go on. It stays until somebody decides.
        </EmptyState>
      </Panel>
    );
  return (
    <Stack gap="md">
      {own.map(({ queue, length }) => (
        <QuarantinedQueue key={queue} queue={queue} length={length} />
      ))}
    </Stack>
  );
}

function QuarantinedQueue({ queue, length }: { readonly queue: string; readonly length: number }) {
  const [offset, setOffset] = useState(0);
  const read = useRead(`${PATH}/{queue}`, { path: { queue }, query: { limit: PAGE, offset } }, { every: LIVE });
  const redrive = useChange("post", `${PATH}/{queue}/{id}/requeue`, {
    done: "It is in its queue again",
    refreshes: [PATH],
  });
  const discard = useChange("delete", `${PATH}/{queue}/{id}`, { done: "Discarded for good", refreshes: [PATH] });
  const isLast = read.data?.next_offset === null;
  return (
    <Panel
      title={`Set aside from ${queue}`}
      description={`${length === 1 ? "One entry" : `${length} entries`} could not be read. Put each back, as it was or corrected, or discard it`}
    >
      <DataTable
        caption={`Entries of ${queue} that could not be read`}
        rows={read.data?.items as unknown as readonly Aside[] | undefined}
        read={read}
        keyOf={({ id }) => id}
        empty={<EmptyState title="Nothing more on this page" />}
        columns={[
          { title: "Entry", cell: ({ id }) => <Code fz="sm">{id}</Code> },
          {
            title: "Why",
            cell: ({ reason }) => (
              <Text size="sm" lineClamp={3}>
                {reason}
              </Text>
            ),
          },
          { title: "Set aside", align: "right", cell: ({ quarantined_at }) => <Time at={quarantined_at || null} /> },
          {
            title: "What to do",
            isActions: true,
            cell: ({ id }) => (
              <>
                <Button
                  size="xs"
                  variant="default"
                  leftSection={<IconRefresh size={14} aria-hidden />}
                  aria-label={`Put back: ${id}`}
                  loading={redrive.isPending && redrive.variables?.path.id === id}
                  onClick={() => redrive.mutate({ path: { queue, id }, body: {} })}
                >
                  Put back
                </Button>
                <ConfirmButton
                  label={`Discard: ${id}`}
                  question="The entry is forgotten for good, and what it stands for is not sent."
                  leftSection={<IconTrash size={14} aria-hidden />}
                  onConfirm={() => discard.mutate({ path: { queue, id } })}
                >
                  Discard
                </ConfirmButton>
              </>
            ),
          },
        ]}
        detail={(entry) => (
          <Correction
            entry={entry}
            isBusy={redrive.isPending}
            onRedrive={(body) => redrive.mutate({ path: { queue, id: entry.id }, body })}
          />
        )}
      />
      {(offset > 0 || !isLast) && read.data && (
        <Group justify="flex-end" mt="sm">
          <Button
            variant="default"
            size="xs"
            disabled={offset === 0}
            onClick={() => setOffset(Math.max(0, offset - PAGE))}
          >
            Newer
          </Button>
          <Button
            variant="default"
            size="xs"
            disabled={isLast}
            onClick={() => setOffset(read.data.next_offset ?? offset)}
          >
            Older
          </Button>
        </Group>
      )}
    </Panel>
  );
}

interface CorrectionProps {
  readonly entry: Aside;
  readonly isBusy: boolean;
  readonly onRedrive: (body: { readonly corrected?: string; readonly member?: string }) => void;
}

function Correction({ entry, isBusy, onRedrive }: CorrectionProps) {
  const [corrected, setCorrected] = useState(entry.raw ?? "");
  const [member, setMember] = useState("");
  return (
    <Stack gap="sm" maw={760}>
      <Text size="sm">{entry.reason}</Text>
      {entry.withheld ? (
        <Text size="sm" c="dimmed">
          Its contents are not shown: entries of this queue may hold what only their readers should see.
        </Text>
      ) : (
        <JsonView value={entry.raw ?? { bytes_as_base64: entry.raw_base64 }} maxHeight={220} />
      )}
      <Textarea
        label="Corrected entry"
        description="What goes back in its place. It is checked before it does"
        value={corrected}
        onChange={(event) => setCorrected(event.currentTarget.value)}
        autosize
        minRows={3}
        maxRows={12}
        styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
      />
      <TextInput
        label="Member"
        description="Only for entries of pending sets: whose hash it is. The reason names it"
        value={member}
        onChange={(event) => setMember(event.currentTarget.value)}
      />
      {/* On the left, where no notification comes to lie over it. */}
      <Group>
        <Button
          size="xs"
          loading={isBusy}
          disabled={corrected === "" && member === ""}
          onClick={() =>
            onRedrive({ ...(corrected === "" ? {} : { corrected }), ...(member === "" ? {} : { member }) })
          }
        >
          Put back corrected
        </Button>
      </Group>
    </Stack>
  );
}
