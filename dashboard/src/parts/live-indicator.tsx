import { Tooltip } from "@mantine/core";
import type { Read } from "../api/reads.ts";
import styles from "./live-indicator.module.css";

/** Tells whether the numbers of a page are those of this moment. Give it the page's live reads. */
export function LiveIndicator({ of }: { readonly of: readonly Read<unknown>[] }) {
  const isLost = of.some(({ failureCount, isError }) => isError || failureCount > 0);
  const label = isLost
    ? "The server does not answer; what you see is from before. It is asked again and again."
    : "This page follows what happens, every few seconds.";
  return (
    <Tooltip label={label} multiline maw={280}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: its tooltip must be reachable by keyboard */}
      <span className={styles.live} data-lost={isLost} role="status" tabIndex={0}>
        {isLost ? "Connection lost" : "Live"}
      </span>
    </Tooltip>
  );
}
