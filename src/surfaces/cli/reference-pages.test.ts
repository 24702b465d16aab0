import { expect, test } from "vitest";
import { z } from "zod";
import { settings } from "../../kernel/config.ts";
import { defineErrors } from "../../kernel/errors.ts";
import { configurationReference } from "./reference-configuration.ts";
import { errorsReference } from "./reference-errors.ts";

test("the page of settings shows environment name, default with its unit and meaning, group by group", () => {
  const page = configurationReference([
    settings.seconds("job.budget", { default: 50, doc: "how long a job may go on" }),
    settings.optionalText("redis.url", { env: "REDIS_URL", secret: true, doc: "where Redis is: a | b" }),
    settings.listOf("job.names", z.string(), { default: ["a", "b"], doc: "some names" }),
    settings.text("job.key", { default: "hush", secret: true, doc: "a key with a default" }),
    settings.json("job.routes", z.record(z.string(), z.number()), { default: { x: 1 }, doc: "some routes" }),
  ] as never);
  expect(page.match(/^## .*$/gm)).toEqual(["## job", "## redis"]);
  expect(page).toContain("| `CARILLON_JOB_BUDGET` | `50` s | how long a job may go on |");
  expect(page).toContain("| `REDIS_URL` (secret) | none | where Redis is: a \\| b |");
  expect(page).toContain("| `CARILLON_JOB_NAMES` | `a,b` | some names |");
  expect(page).toContain('| `CARILLON_JOB_ROUTES` | `{"x":1}` | some routes |');
  expect(page).not.toContain("hush");
});

test("the page of errors shows each code once, where it is declared first", () => {
  const one = defineErrors({ queue_full: { status: 503, doc: "The queue is full.", hint: "Wait." } });
  const two = defineErrors({ not_here: { status: 404, doc: "It is not here." } });
  const page = errorsReference([
    { title: "Jobs", errors: one },
    { title: "Again", errors: one },
    { title: "Rooms", errors: { ...one, ...two } },
  ]);
  expect(page.match(/^## .*$/gm)).toEqual(["## Jobs", "## Rooms"]);
  expect(page.match(/queue_full/g)).toHaveLength(1);
  expect(page).toContain("| `queue_full` | 503 | The queue is full. | Wait. |");
  expect(page).toContain("| `not_here` | 404 | It is not here. |  |");
});
