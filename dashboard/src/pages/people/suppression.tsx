import { Group, Stack, Text } from "@mantine/core";
import { useChange, useRead } from "../../api/index.ts";
import { ConfirmButton, StateBadge, Time } from "../../parts/index.ts";

const REASONS: Readonly<Record<string, string>> = {
  User: "they unsubscribed",
  Bounce: "mails bounced",
  Complaint: "they called a mail unwanted",
  Admin: "an administrator decided so",
  Stop: "they texted STOP",
  Unreachable: "the carrier cannot reach it",
};
const REFRESHES = ["/api/1/admin/users/{sub}", "/api/1/admin/suppressed_"];

interface SuppressionProps {
  readonly channel: "email" | "phone";
  readonly address: string;
}

/** Why nothing is sent to an address, and the way to lift it. */
export function Suppression({ channel, address }: SuppressionProps) {
  return channel === "email" ? <OfEmail address={address} /> : <OfPhone address={address} />;
}

function OfEmail({ address }: { readonly address: string }) {
  const read = useRead("/api/1/admin/suppressed_emails", { query: { email: address, limit: 1 } });
  const lift = useChange("delete", "/api/1/admin/suppressed_emails/{uid}", {
    done: `${address} may be written to again`,
    refreshes: REFRESHES,
  });
  const [held] = read.data?.items ?? [];
  return (
    <Held address={address} held={held} onLift={(uid) => lift.mutate({ path: { uid } })}>
      {held?.scope === "lists" ? "No mails of lists" : "No mails at all"}
    </Held>
  );
}

function OfPhone({ address }: { readonly address: string }) {
  const read = useRead("/api/1/admin/suppressed_phone_numbers", { query: { phone_number: address, limit: 1 } });
  const lift = useChange("delete", "/api/1/admin/suppressed_phone_numbers/{uid}", {
    done: `${address} may be texted again`,
    refreshes: REFRESHES,
  });
  const [held] = read.data?.items ?? [];
  return (
    <Held address={address} held={held} onLift={(uid) => lift.mutate({ path: { uid } })}>
      No texts
    </Held>
  );
}

interface HeldProps {
  readonly address: string;
  readonly held: { readonly uid: string; readonly reason: string; readonly created_at: number } | undefined;
  readonly onLift: (uid: string) => void;
  readonly children: string;
}

function Held({ address, held, onLift, children }: HeldProps) {
  return (
    <Stack gap={4} align="flex-start">
      <StateBadge state="suppressed" />
      {held && (
        <>
          <Text size="xs" c="dimmed" component="div">
            {children}: {REASONS[held.reason] ?? held.reason}, <Time at={held.created_at} />
          </Text>
          <Group gap={4}>
            <ConfirmButton
              label={`Lift the suppression of ${address}`}
              question="Messages may go there again, whoever has the address. Do it only if its owner asks."
              confirm="Lift it"
              onConfirm={() => onLift(held.uid)}
            >
              Lift
            </ConfirmButton>
          </Group>
        </>
      )}
    </Stack>
  );
}
