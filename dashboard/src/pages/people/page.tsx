import { Stack, Text, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { IconSearch } from "@tabler/icons-react";
import { useState } from "react";
import { useRead } from "../../api/index.ts";
import { DataTable, EmptyState, nameOf, PageHeader, Panel, PersonLink, Time, useKeyPages } from "../../parts/index.ts";
import { AddPerson } from "./add-person.tsx";

export function Page() {
  const [text, setText] = useState("");
  const [search] = useDebouncedValue(text.trim(), 250);
  const { cursor, pager, reset } = useKeyPages<string>();
  const people = useRead("/api/1/admin/people", {
    query: { limit: 25, before: cursor, ...(search === "" ? {} : { search }) },
  });
  return (
    <>
      <PageHeader title="People" actions={<AddPerson />}>
        How somebody can be reached, what they were told, and what became of it.
      </PageHeader>
      <Panel>
        <TextInput
          label="Find somebody"
          description="By name, email address, phone number or sub"
          placeholder="Ada, ada@example.com, +1 415…"
          leftSection={<IconSearch size={16} aria-hidden />}
          value={text}
          onChange={(event) => {
            setText(event.currentTarget.value);
            reset();
          }}
          mb="md"
          maw={460}
        />
        <DataTable
          caption="People, the newest first"
          rows={people.data?.items}
          read={people}
          keyOf={({ uuid }) => uuid}
          expect={10}
          empty={
            search === "" ? (
              <EmptyState title="There is nobody yet">
                Your application makes them with `POST /api/1/admin/users`, or you do, above.
              </EmptyState>
            ) : (
              <EmptyState title="Nobody fits">
                Try a part of the name or address, or the beginning of the sub.
              </EmptyState>
            )
          }
          columns={[
            {
              title: "Person",
              cell: (person) => (
                <>
                  <PersonLink person={person} weight={550} />
                  {nameOf(person) && (
                    <Text size="xs" c="dimmed">
                      {person.sub}
                    </Text>
                  )}
                </>
              ),
            },
            { title: "Addresses", cell: ({ emails, phones }) => <Addresses values={[...emails, ...phones]} /> },
            { title: "Devices", align: "right", cell: ({ push_tokens }) => push_tokens || "–" },
            { title: "Timezone", cell: ({ timezone }) => timezone?.replaceAll("_", " ") ?? "–" },
            { title: "Since", align: "right", cell: ({ created_at }) => <Time at={created_at} /> },
          ]}
        />
        {pager(people.data?.next)}
      </Panel>
    </>
  );
}

const FEW = 3;

function Addresses({ values }: { readonly values: readonly string[] }) {
  if (values.length === 0) return <span>–</span>;
  return (
    <Stack gap={2}>
      {values.slice(0, FEW).map((value) => (
        <span key={value}>{value}</span>
      ))}
      {values.length > FEW && (
        <Text span size="xs" c="dimmed">
          and {values.length - FEW} more
        </Text>
      )}
    </Stack>
  );
}
