import { Anchor, Code } from "@mantine/core";
import { Link, useParams } from "@tanstack/react-router";
import { useRead } from "../../api/index.ts";
import { FamilyCharts } from "../../parts/family-charts.tsx";
import { counted, EmptyState, ErrorState, LoadingState, PageHeader, sentence } from "../../parts/index.ts";
import type { Declared } from "./families.ts";

/** Everything that one family counts, whatever it is: what it declares is drawn. */
export function Page() {
  const { family: name } = useParams({ strict: false }) as { readonly family: string };
  const declared = useRead("/api/1/admin/stats");
  const family = (declared.data?.items as readonly Declared[] | undefined)?.find((each) => each.name === name);
  const back = (
    <Anchor component={Link} to="/data-health" size="sm">
      All families
    </Anchor>
  );
  if (!family)
    return (
      <>
        <PageHeader title="Statistics" actions={back} />
        {declared.error ? (
          <ErrorState error={declared.error} retry={() => void declared.refetch()} />
        ) : declared.data ? (
          <EmptyState title="There is no such family">
            Nobody declares <Code>{name}</Code>; all that are declared are listed under Data health.
          </EmptyState>
        ) : (
          <LoadingState lines={8} />
        )}
      </>
    );
  return (
    <>
      <PageHeader title={sentence(family.title)} actions={back}>
        {counted(family.events.length, "event", "events")} under <Code component="span">{name}</Code>, stored in{" "}
        <Code component="span">{family.table}</Code>.{" "}
        {family.held === 1 ? "Today may still change." : `The last ${family.held} days may still change.`}
      </PageHeader>
      <FamilyCharts key={name} families={[name]} />
    </>
  );
}
