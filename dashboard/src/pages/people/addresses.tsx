import { Group, Stack, Switch, Text } from "@mantine/core";
import { IconTrash } from "@tabler/icons-react";
import { type Answer, LIVE, useChange, useRead } from "../../api/index.ts";
import { ChannelMark, ConfirmButton, DataTable, EmptyState, Panel, StateBadge, Time } from "../../parts/index.ts";
import { AddAddress } from "./add-address.tsx";
import { Suppression } from "./suppression.tsx";

type Methods = Answer<"get", "/api/1/admin/users/{sub}/contact_methods">;

interface Method {
  readonly uid: string;
  readonly channel: "email" | "phone" | "push";
  readonly name: string;
  readonly wanted: boolean;
  readonly verified: boolean;
  readonly suppressed: boolean;
  readonly createdAt: number;
  /** When the device was last there. */
  readonly seenAt?: number;
  readonly confirmedAt?: number | null;
}

/** How somebody can be reached, what stands against it, and switches for it. */
export function Addresses({ sub }: { readonly sub: string }) {
  const read = useRead("/api/1/admin/users/{sub}/contact_methods", { path: { sub } }, { every: LIVE });
  const refreshes = ["/api/1/admin/users/{sub}"];
  const change = useChange("post", "/api/1/admin/users/{sub}/contact_methods/{uid}/notifications", {
    done: "Switched",
    refreshes,
  });
  const remove = useChange("delete", "/api/1/admin/users/{sub}/contact_methods/{uid}", {
    done: "The address is removed",
    refreshes,
  });
  return (
    <Panel
      title="Addresses"
      description="A message goes where all is well: verified, wanted and not suppressed"
      actions={<AddAddress sub={sub} />}
    >
      <DataTable
        caption="Addresses of the person"
        rows={read.data && methodsOf(read.data)}
        read={read}
        keyOf={({ uid }) => uid}
        empty={
          <EmptyState title="Nobody can reach them">
            Add an address above, or with `POST /api/1/admin/users/{"{sub}"}/contact_methods`.
          </EmptyState>
        }
        columns={[
          {
            title: "Address",
            cell: ({ name, seenAt, confirmedAt }) => (
              <>
                <Text size="sm" fw={550}>
                  {name}
                </Text>
                {seenAt !== undefined && (
                  <Text size="xs" c="dimmed" component="div">
                    seen <Time at={seenAt} />, last reached <Time at={confirmedAt} />
                  </Text>
                )}
              </>
            ),
          },
          { title: "Kind", cell: ({ channel }) => <ChannelMark channel={channel} /> },
          { title: "State", cell: (method) => <State method={method} /> },
          { title: "Since", align: "right", cell: ({ createdAt }) => <Time at={createdAt} /> },
          {
            title: "Wanted",
            cell: ({ uid, name, wanted }) => (
              <Switch
                checked={wanted}
                disabled={change.isPending && change.variables?.path.uid === uid}
                aria-label={`Notifications to ${name}`}
                onChange={(event) =>
                  change.mutate({ path: { sub, uid }, body: { enabled: event.currentTarget.checked } })
                }
              />
            ),
          },
          {
            title: "Remove",
            isActions: true,
            cell: ({ uid, name }) => (
              <ConfirmButton
                label={`Remove ${name}`}
                question="The person is no longer reached there. Suppressions of the address stay."
                leftSection={<IconTrash size={14} aria-hidden />}
                onConfirm={() => remove.mutate({ path: { sub, uid } })}
              >
                Remove
              </ConfirmButton>
            ),
          },
        ]}
      />
    </Panel>
  );
}

function State({ method }: { readonly method: Method }) {
  const { verified, suppressed, wanted, channel, name } = method;
  if (suppressed && channel !== "push") return <Suppression channel={channel} address={name} />;
  return (
    <Stack gap={4} align="flex-start">
      <Group gap={6}>
        {!verified && <StateBadge state="unverified" tone="warn" />}
        {!wanted && <StateBadge state="switched_off" />}
        {verified && wanted && <StateBadge state="reachable" tone="good" />}
      </Group>
    </Stack>
  );
}

function methodsOf({ emails, phones, push_tokens }: Methods): readonly Method[] {
  const address =
    (channel: "email" | "phone") =>
    ({ uid, value, receives_notifications, verified, suppressed, created_at }: Methods["emails"][number]): Method => ({
      uid,
      channel,
      name: value,
      wanted: receives_notifications,
      verified,
      suppressed,
      createdAt: created_at,
    });
  return [
    ...emails.map(address("email")),
    ...phones.map(address("phone")),
    ...push_tokens.map(
      ({ uid, platform, receives_notifications, created_at, last_seen_at, last_confirmed_at }): Method => ({
        uid,
        channel: "push",
        name: PLATFORMS[platform],
        wanted: receives_notifications,
        verified: true,
        suppressed: false,
        createdAt: created_at,
        seenAt: last_seen_at,
        confirmedAt: last_confirmed_at,
      }),
    ),
  ];
}

const PLATFORMS = { ios: "Apple device", android: "Android device", generic: "Device" } as const;
