import { useSyncExternalStore } from "react";

/** The one clock of the pages: the server's time, as far as this computer can tell. Unix seconds. */
let ahead = 0;
const listeners = new Set<() => void>();
let shown = Date.now() / 1000;
let timer: ReturnType<typeof setInterval> | undefined;

/** The server told its time; a computer with a wrong clock still shows right ages. */
export function setServerTime(now: number): void {
  ahead = now - Date.now() / 1000;
}

export const now = () => Date.now() / 1000 + ahead;

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  timer ??= setInterval(() => {
    shown = now();
    for (const each of listeners) each();
  }, 1000);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
  };
}

/** The time now, each time in steps of this many seconds, so that what shows it is drawn no more often. */
export function useNow(step = 1): number {
  return useSyncExternalStore(subscribe, () => {
    if (timer === undefined) shown = now();
    return Math.floor(shown / step) * step;
  });
}
