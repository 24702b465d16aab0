import { defineConfig } from "vitest/config";

/** Only for `npm run screenshots`: what it runs is no test. */
export default defineConfig({
  test: {
    include: ["test/browser/*.shoot.ts"],
    globalSetup: ["test/harness/global-setup.ts"],
    pool: "forks",
    testTimeout: 60_000,
    hookTimeout: 120_000,
  },
});
