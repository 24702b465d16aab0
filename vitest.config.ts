import { defineConfig } from "vitest/config";
import { SlowFirst } from "./test/harness/slow-first.ts";

export default defineConfig({
  test: {
    include: ["src/**/*.test.ts", "test/**/*.test.ts"],
    globalSetup: ["test/harness/global-setup.ts"],
    setupFiles: ["test/harness/furnish.ts"],
    pool: "forks",
    // Loading the house takes longer than most tests: a worker does it once, and no test leaves anything behind.
    isolate: false,
    maxWorkers: 2,
    sequence: { sequencer: SlowFirst },
    testTimeout: 60_000,
    hookTimeout: 120_000,
  },
});
