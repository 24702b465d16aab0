import { Anchor } from "@mantine/core";
import { Link, useParams } from "@tanstack/react-router";
import { useRead } from "../../api/index.ts";
import { ErrorState, LoadingState, PageHeader } from "../../parts/index.ts";
import { draftOf, EMPTY } from "./draft.ts";
import { Editor } from "./editor.tsx";

/** One touch point, or a new one. */
export function Page() {
  const { uid } = useParams({ strict: false }) as { readonly uid: string };
  const isNew = uid === "new";
  const read = useRead("/api/1/admin/touch_points/{uid}", { path: { uid } }, { enabled: !isNew });
  if (isNew) return <Editor key="new" point={undefined} initial={EMPTY} />;
  const point = read.data?.uid === uid ? read.data : undefined;
  if (point) return <Editor key={uid} point={point} initial={draftOf(point)} />;
  return (
    <>
      <PageHeader title="Touch point">
        <Anchor component={Link} to="/touch-points">
          All touch points
        </Anchor>
      </PageHeader>
      {read.error ? <ErrorState error={read.error} retry={() => void read.refetch()} /> : <LoadingState lines={8} />}
    </>
  );
}
