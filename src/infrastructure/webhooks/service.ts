export { type EmitContext, emitEvents, isWanted } from "./emit.ts";
export { EVENT_TYPES, type EventType, WebhookEvent } from "./event.ts";
