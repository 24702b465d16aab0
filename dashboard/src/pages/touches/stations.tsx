import { IconCheck, IconX } from "@tabler/icons-react";
import { Duration, Time } from "../../parts/index.ts";
import styles from "./stations.module.css";
import { stationsOf, type Timeline } from "./steps.ts";

/** How far a touch has come, at a glance. */
export function Stations({ timeline }: { readonly timeline: Timeline }) {
  const stations = stationsOf(timeline);
  const start = stations[0]!.at;
  return (
    <ol className={styles.stations} aria-label="How far it has come">
      {stations.map(({ label, at, isBad = false }, index) => {
        const state = isBad ? "lost" : at === null ? "open" : "done";
        return (
          <li key={label} className={styles.station} data-state={state}>
            <span className={styles.bullet} aria-hidden>
              {state === "done" && <IconCheck size={15} stroke={3} />}
              {state === "lost" && <IconX size={15} stroke={3} />}
            </span>
            <span className={styles.label}>{label}</span>
            <span>
              {at === null ? (
                "not yet"
              ) : index === 0 || start === null ? (
                <Time at={at} />
              ) : (
                <>
                  after <Duration seconds={Math.max(0, at - start)} />
                </>
              )}
            </span>
          </li>
        );
      })}
    </ol>
  );
}
