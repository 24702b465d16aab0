export { choose, type NewChoice } from "./choices.ts";
export { maskOf, type TimeRange, WEEKDAYS } from "./window.ts";
