// npm run simulate [-- --seed N --messages N --days N --channel push|sms|email]: a week of messages through bad providers, at full size.
// npm run simulate -- people [--seed N --people N --days N]: a month of people who are reminded, click, move and leave.
import { join } from "node:path";
import { parseArgs } from "node:util";
import { setUp } from "./setup.js";
import { explain, root, runAloud, StepFailed, say } from "./steps.js";

const CHANNELS = ["push", "sms", "email"];

function wholeNumber(text, option) {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1) throw new StepFailed(`--${option} must be a whole number above zero`);
  return String(value);
}

try {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      seed: { type: "string", default: "20261115" },
      messages: { type: "string", default: "50000" },
      people: { type: "string", default: "2000" },
      days: { type: "string" },
      channel: { type: "string" },
    },
  });
  if (values.channel && !CHANNELS.includes(values.channel))
    throw new StepFailed(`There is no channel ${values.channel}. There are: ${CHANNELS.join(", ")}`);
  const [what, ...more] = positionals;
  if (more.length > 0 || (what !== undefined && what !== "people"))
    throw new StepFailed("There is one other simulation: npm run simulate -- people");
  const days = wholeNumber(values.days ?? (what === "people" ? "30" : "7"), "days");
  const env = {
    CARILLON_SIM_SEED: wholeNumber(values.seed, "seed"),
    CARILLON_SIM_MESSAGES: wholeNumber(values.messages, "messages"),
    CARILLON_SIM_PEOPLE: wholeNumber(values.people, "people"),
    CARILLON_SIM_DAYS: days,
    CARILLON_SIM_PROGRESS: "1",
  };
  await setUp({ redis: "always" });
  say(
    what === "people"
      ? `${days} days of ${values.people} people, seed ${values.seed}`
      : `${days} days of ${values.messages} messages a channel, seed ${values.seed}`,
  );
  const names = what === "people" ? [what] : values.channel ? [values.channel] : CHANNELS;
  const files = names.map((name) => `test/simulation/${name}-days.test.ts`);
  process.exitCode = await runAloud(process.execPath, [join(root, "node_modules/vitest/vitest.mjs"), "run", ...files], {
    env,
  });
} catch (error) {
  process.exitCode = explain(error);
}
