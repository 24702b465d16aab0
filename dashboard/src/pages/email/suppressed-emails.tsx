import { Anchor } from "@mantine/core";
import { type Answer, useChange, useRead } from "../../api/index.ts";
import { AddSuppression } from "../../parts/channel/add-suppression.tsx";
import { SUPPRESSED_PAGE, Suppressions, useSearchOf } from "../../parts/channel/suppressions.tsx";
import { StateBadge } from "../../parts/index.ts";
import { ImportButton } from "./import-button.tsx";

const PATH = "/api/1/admin/email/suppressions";
type Reason = Answer<"get", typeof PATH>["items"][number]["reason"];

const REASONS: Readonly<Record<Reason, string>> = {
  User: "left",
  Bounce: "bounced",
  Complaint: "complained",
  Admin: "by hand",
};

export function SuppressedEmails() {
  const find = useSearchOf<Reason>();
  const { text, reason, after } = find.search;
  const read = useRead(
    PATH,
    { query: { limit: SUPPRESSED_PAGE, email: text || undefined, reason, after } },
    { every: 5 },
  );
  const add = useChange("post", PATH, {
    done: ({ email_address }) => `${email_address} gets no more mails`,
    refreshes: [PATH],
  });
  const lift = useChange("delete", `${PATH}/{uid}`, { done: "Mails go there again", refreshes: [PATH] });
  return (
    <Suppressions
      title="Suppressed email addresses"
      description="Nothing is mailed to them, or no mails of lists, whoever has them"
      address="email address"
      reasons={REASONS}
      find={find}
      read={read}
      rows={read.data?.items.map((item) => ({
        ...item,
        address: item.email_address,
        detail: { scope: item.scope, note: item.note },
      }))}
      columns={[
        {
          title: "Holds back",
          cell: ({ scope }) => (
            <StateBadge state={scope} label={scope === "all" ? "all mails" : "mails of lists"} tone="neutral" />
          ),
        },
        { title: "Note", cell: ({ note }) => note ?? "–" },
      ]}
      lift={(uid) => lift.mutate({ path: { uid } })}
      actions={
        <>
          <Anchor href={`${PATH}/export`} download size="sm">
            Download CSV
          </Anchor>
          <ImportButton />
          <AddSuppression
            label="Email address"
            placeholder="person@example.com"
            withNote
            isBusy={add.isPending}
            add={(email, note, done) =>
              add.mutate({ body: { email, ...(note === undefined ? {} : { note }) } }, { onSuccess: done })
            }
          />
        </>
      }
    />
  );
}
