import { lazy, Suspense, useSyncExternalStore } from "react";

interface Notice {
  readonly title?: string;
  readonly message: string;
  readonly color: "green" | "red";
}

const load = () => import("./notices.tsx");
const Notices = lazy(load);

let isWanted = false;
const listeners = new Set<() => void>();

/** Tells whoever looks at the page what happened. What shows notices is loaded with the first of them. */
export async function tell(notice: Notice): Promise<void> {
  isWanted = true;
  for (const each of listeners) each();
  (await load()).show({ ...notice });
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function NoticeBoard() {
  const isShown = useSyncExternalStore(subscribe, () => isWanted);
  return isShown ? (
    <Suspense>
      <Notices />
    </Suspense>
  ) : null;
}
