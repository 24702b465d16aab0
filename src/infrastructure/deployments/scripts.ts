import { defineScript } from "../../kernel/redis/index.ts";

/** Not idempotent: a repeat would answer the commit itself as the previous one, and nobody would build. */
export const openBuildHash = defineScript({
  name: "builds.open",
  file: new URL("./scripts/open.lua", import.meta.url),
  keys: ["build_hash"],
  args: ["sha"],
  idempotent: false,
  reply: (previous: string) => (previous === "" ? undefined : previous),
});

export const withdrawBuildHash = defineScript({
  name: "builds.withdraw",
  file: new URL("./scripts/withdraw.lua", import.meta.url),
  keys: ["build_hash"],
  args: ["sha", "previous"],
  idempotent: true,
  reply: (code: number) => code === 1,
});
