import { Button, Group, SimpleGrid, Stack, Switch, TextInput } from "@mantine/core";
import { IconShieldCheck } from "@tabler/icons-react";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { CALM, useChange, useRead } from "../../api/index.ts";
import { Num, PageHeader, StatTile, Time } from "../../parts/index.ts";
import { AuditPanel } from "./audit-panel.tsx";
import { Explorer } from "./explorer.tsx";
import { Families } from "./families.tsx";
import { Weights } from "./weights.tsx";

export function Page() {
  const declared = useRead("/api/1/admin/keys");
  const audited = useRead("/api/1/admin/keys/audit", undefined, { every: CALM });
  const [isDeep, setDeep] = useState(false);
  const start = useChange("post", "/api/1/admin/keys/audit", { done: "An audit begins" });
  const { name } = useSearch({ strict: false }) as { readonly name?: string };
  const navigate = useNavigate();
  const explore = (wanted: string | undefined) =>
    void navigate({ to: "/keyspace", search: (wanted === undefined ? {} : { name: wanted }) as never });
  const audit = audited.data?.audit;
  return (
    <>
      <PageHeader
        title="Keyspace"
        actions={
          <>
            <Switch
              label="Deep"
              checked={isDeep}
              onChange={({ currentTarget }) => setDeep(currentTarget.checked)}
              title="Reads far more of each value, and weighs every element"
            />
            <Button
              leftSection={<IconShieldCheck size={17} aria-hidden />}
              loading={start.isPending}
              onClick={() => start.mutate({ body: { deep: isDeep } })}
            >
              Audit
            </Button>
          </>
        }
      >
        Every key that Carillon may write, what it means, and whether Redis agrees.
      </PageHeader>
      <Stack gap="md">
        <SimpleGrid cols={{ base: 2, sm: 4 }} spacing={{ base: "xs", sm: "md" }}>
          <StatTile
            label="Patterns"
            value={declared.data ? <Num value={declared.data.items.length} /> : undefined}
            note="declared keys and channels"
          />
          <StatTile
            label="Keys"
            value={audit === undefined ? undefined : <Num value={audit?.keys} />}
            note={audit ? "at the last audit" : "not counted yet"}
          />
          <StatTile
            label="Memory"
            value={audit === undefined ? undefined : <Num value={audit?.bytes} as="bytes" />}
            note={audit ? "of all keys" : "not weighed yet"}
          />
          <StatTile
            label="Findings"
            value={audit === undefined ? undefined : <Num value={audit?.found} />}
            note={audit ? <Time at={audit.started_at} /> : "no audit so far"}
            tone={audit && !audit.ok ? "bad" : "neutral"}
          />
        </SimpleGrid>
        <AuditPanel read={audited} running={start.data?.uid} onExplore={explore} />
        {audit && <Weights audit={audit} />}
        <FindKey onFind={explore} />
        <Families declared={declared} audit={audit ?? undefined} onExplore={explore} />
      </Stack>
      <Explorer name={name} onExplore={explore} />
    </>
  );
}

function FindKey({ onFind }: { readonly onFind: (name: string) => void }) {
  const [name, setName] = useState("");
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (name.trim() !== "") onFind(name.trim());
      }}
    >
      <Group gap="xs" align="flex-end" wrap="nowrap">
        <TextInput
          flex={1}
          label="Look into a key"
          placeholder="jobs:hot"
          value={name}
          onChange={({ currentTarget }) => setName(currentTarget.value)}
          maxLength={1024}
        />
        <Button type="submit" variant="default">
          Explore
        </Button>
      </Group>
    </form>
  );
}
