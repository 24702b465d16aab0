import { type Answer, useChange, useRead } from "../../api/index.ts";
import { AddSuppression } from "../../parts/channel/add-suppression.tsx";
import { SUPPRESSED_PAGE, Suppressions, useSearchOf } from "../../parts/channel/suppressions.tsx";

const PATH = "/api/1/admin/sms/suppressed_phone_numbers";
type Reason = Answer<"get", typeof PATH>["items"][number]["reason"];

const REASONS: Readonly<Record<Reason, string>> = {
  Stop: "answered STOP",
  Unreachable: "cannot be reached",
  User: "by hand",
};

export function SuppressedPhones() {
  const find = useSearchOf<Reason>();
  const { text, reason, after } = find.search;
  const read = useRead(
    PATH,
    { query: { limit: SUPPRESSED_PAGE, phone_number: text || undefined, reason, after } },
    { every: 5 },
  );
  const add = useChange("post", PATH, {
    done: ({ phone_number }) => `${phone_number} gets no more texts`,
    refreshes: [PATH],
  });
  const lift = useChange("delete", `${PATH}/{uid}`, { done: "Texts go there again", refreshes: [PATH] });
  return (
    <Suppressions
      title="Suppressed phone numbers"
      description="Nothing is texted to them, whoever has them"
      address="phone number"
      reasons={REASONS}
      find={find}
      read={read}
      rows={read.data?.items.map((item) => ({ ...item, address: item.phone_number, detail: item.reason_details }))}
      lift={(uid) => lift.mutate({ path: { uid } })}
      actions={
        <AddSuppression
          label="Phone number"
          placeholder="+12025550100"
          isBusy={add.isPending}
          add={(phone_number, _, done) => add.mutate({ body: { phone_number } }, { onSuccess: done })}
        />
      }
    />
  );
}
