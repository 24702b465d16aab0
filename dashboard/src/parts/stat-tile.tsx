import { Skeleton } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { Tone } from "../app/theme.ts";
import styles from "./stat-tile.module.css";

interface StatTileProps {
  readonly label: string;
  /** A number or a short text; undefined while it is not known. */
  readonly value: ReactNode;
  /** What the value means or is compared with. */
  readonly note?: ReactNode;
  /** Colours the value; only where somebody should look. */
  readonly tone?: Tone;
  /** The page that tells more. */
  readonly to?: string;
}

/** One number that matters. It keeps its height while it loads. */
export function StatTile({ label, value, note, tone = "neutral", to }: StatTileProps) {
  const inside = (
    <>
      <span className={styles.label}>{label}</span>
      {value === undefined ? (
        <Skeleton h={28} w="55%" my={3} />
      ) : (
        <span className={styles.value} data-tone={tone}>
          {value}
        </span>
      )}
      <span className={styles.note}>{value === undefined ? <Skeleton h={12} w="75%" mt={4} /> : note}</span>
    </>
  );
  return to === undefined ? (
    <div className={styles.tile}>{inside}</div>
  ) : (
    <Link to={to} className={styles.tile}>
      {inside}
    </Link>
  );
}
