export { installReminded } from "./campaign.ts";
export { type Arrival, type EndedTouch, installTouchEffects, type TouchEffects } from "./effects.ts";
export {
  acceptHandover,
  forgetHandover,
  type NewTouch,
  newTouchUid,
  sendTouches,
  touchEntryOf,
  touchQueueLength,
} from "./enqueue.ts";
export { Callback, METHOD_OF, TOUCH_CHANNELS, type TouchChannel, TouchEntry } from "./entries.ts";
export { errors } from "./errors.ts";
export { DAILY_REMINDER } from "./installed.ts";
export type { TouchPoint } from "./point.ts";
export { changePoint, createPoint, listPoints, type PointFields, pointsBySlug } from "./point-store.ts";
export { settings as touchSettings } from "./settings.ts";
