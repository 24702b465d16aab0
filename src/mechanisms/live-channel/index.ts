export { type LiveContext, LiveGateway, type LiveLimits } from "./gateway.ts";
export type { LiveChannelKind, LiveGrant, LiveRefusal, LiveReplay } from "./kind.ts";
export { closeCodes, type LiveSocket } from "./socket.ts";
