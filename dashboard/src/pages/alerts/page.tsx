import { EmptyState, PageHeader } from "../../parts/index.ts";

export function Page() {
  return (
    <>
      <PageHeader title="Alerts" />
      <EmptyState title="Nothing here yet">This page is on its way.</EmptyState>
    </>
  );
}
