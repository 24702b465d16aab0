import { findRedisServer } from "../../src/kernel/redis/index.ts";

export default function setup(): void {
  if (!findRedisServer())
    throw new Error("The tests need redis-server or valkey-server on PATH; `npm test` installs it.");
}
