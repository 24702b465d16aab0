export { type FlushOptions, type FlushResult, WriteBehind, type WriteBehindPlan, writeBehind } from "./buffer.ts";
export { isRowError, writeOrIsolate } from "./isolate.ts";
