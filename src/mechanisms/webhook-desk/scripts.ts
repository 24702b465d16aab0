import { defineScript } from "../../kernel/redis/index.ts";

export const accept = defineScript({
  name: "webhooks.accept",
  file: new URL("./scripts/accept.lua", import.meta.url),
  keys: ["event", "unprocessable", "...keys"],
  args: ["kept", "flag_ms", "flagged", "plain", "senseless", "...items"],
  idempotent: false,
  reply: (queued: number) => queued,
});
