import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { openTestContext, type TestContext } from "../../../test/harness/context.ts";
import { settings as accessSettings } from "../../infrastructure/access/settings.ts";
import { Config } from "../../kernel/config.ts";
import { migrate } from "../../kernel/sql/index.ts";
import { messageLogMigrations, noteSteps, notesSettled } from "../../mechanisms/message-log/index.ts";
import type { Io } from "./io.ts";
import type { Open } from "./open.ts";
import { described, duration, traceCommand } from "./trace.ts";

let house: TestContext;
let said: string[];
const io = { out: (line = "") => void said.push(line), err: (line = "") => void said.push(line) } as Io;
const config = new Config([]).with([accessSettings.rootSecret, "a root secret for tests, long enough"]);
const open = ((work: (ctx: never) => Promise<unknown>) =>
  work(Object.create(house, { config: { value: config } }) as never)) as unknown as Open;
const trace = (...args: string[]) => {
  said = [];
  return traceCommand(open, io).exitOverride().parseAsync(args, { from: "user" });
};

beforeAll(async () => {
  house = await openTestContext({ sql: true });
  await migrate(house.sql, [{ domain: "messages", migrations: messageLogMigrations }]);
});
beforeEach(() => house.flush());
afterAll(() => house.close());

test("the story of a message is told on the command line, for people and for programs", async () => {
  const now = house.clock.now();
  noteSteps(house, [
    { channel: "sms", uid: "crl_sms_1", step: "queued", at: now - 65 },
    { channel: "sms", uid: "crl_sms_1", step: "accepted", at: now - 64.75, provider: "twilio", detail: "queued" },
    { channel: "sms", uid: "crl_sms_1", step: "delivered", at: now, provider: "twilio" },
  ]);
  await notesSettled(house);
  await trace("crl_sms_1");
  const text = said.join("\n");
  expect(text).toContain("crl_sms_1: a text, 1 min 5 s from first to last");
  expect(text).toContain("It has ended, with delivered");
  expect(text).toMatch(/queued +250 ms\n/);
  expect(text).toMatch(/accepted +1 min 4 s +twilio +queued\n/);
  await trace("crl_sms_1", "--json");
  expect(JSON.parse(said.join("\n"))).toMatchObject({ uid: "crl_sms_1", now: [], seconds: 65 });
});

test("a trace without a uid, with too much, or of an unknown message says what to do", async () => {
  await expect(trace()).rejects.toMatchObject({ exitCode: 64 });
  await expect(trace("crl_sms_1", "--to", "+1555")).rejects.toMatchObject({ exitCode: 64 });
  await expect(trace("crl_sms_none")).rejects.toMatchObject({ exitCode: 1 });
  expect(said.join("\n")).toContain("Nothing is known of a message crl_sms_none");
  await trace("--to", "nobody@example.com");
  expect(said).toEqual(["No message to that address is known."]);
});

test("where a message is stands above its story, with how long and how long yet", () => {
  const lines = described(
    {
      uid: "crl_em_1",
      channel: "email",
      now: [
        {
          ...{ uid: "crl_em_1", channel: "email", place: "email:retrying", state: "waits for its next try" },
          ...{ since: 990, due: 1060, ahead: null, failed_tries: 2, provider: null, provider_id: null },
        },
      ],
      steps: [],
      seconds: null,
    },
    1000,
  );
  expect(lines).toEqual([
    "crl_em_1: a mail",
    "",
    "Now: waits for its next try (email:retrying)",
    "     for 10 s, due in 1 min 0 s, 2 failed tries",
    "",
    "No step of it is kept.",
  ]);
});

test("times that stages took are short to read", () => {
  expect([0, 0.0214, 1.26, 75, 3_700, 90_000].map(duration)).toEqual([
    "0 ms",
    "21 ms",
    "1.3 s",
    "1 min 15 s",
    "1 h 1 min",
    "1 d 1 h",
  ]);
});
