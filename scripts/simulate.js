// npm run simulate [-- --seed N --messages N --days N --channel push|sms|email]: a week of messages through bad providers, at full size.
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
  const { values } = parseArgs({
    options: {
      seed: { type: "string", default: "20261115" },
      messages: { type: "string", default: "50000" },
      days: { type: "string", default: "7" },
      channel: { type: "string" },
    },
  });
  if (values.channel && !CHANNELS.includes(values.channel))
    throw new StepFailed(`There is no channel ${values.channel}. There are: ${CHANNELS.join(", ")}`);
  const env = {
    CARILLON_SIM_SEED: wholeNumber(values.seed, "seed"),
    CARILLON_SIM_MESSAGES: wholeNumber(values.messages, "messages"),
    CARILLON_SIM_DAYS: wholeNumber(values.days, "days"),
    CARILLON_SIM_PROGRESS: "1",
  };
  await setUp({ redis: "always" });
  say(`${values.days} days of ${values.messages} messages a channel, seed ${values.seed}`);
  const files = (values.channel ? [values.channel] : CHANNELS).map((name) => `test/simulation/${name}-days.test.ts`);
  process.exitCode = await runAloud(process.execPath, [join(root, "node_modules/vitest/vitest.mjs"), "run", ...files], {
    env,
  });
} catch (error) {
  process.exitCode = explain(error);
}
