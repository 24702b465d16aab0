import { afterAll, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { type FixtureServer, isSilent, startServer } from "../../providers/http-server.fixture.ts";
import { book } from "../email_templates/service.ts";
import { settings as templateSettings } from "../email_templates/settings.ts";
import { type EmailHouse, openEmail, sample } from "./email.fixture.ts";
import { send } from "./jobs.ts";
import { keys } from "./keys.ts";
import { settings } from "./settings.ts";
import { emailSendStats } from "./stats.ts";

let house: EmailHouse;
let elsewhere: FixtureServer;
beforeAll(async () => {
  house = await openEmail();
  elsewhere = await startServer(isSilent);
});
afterAll(async () => {
  await elsewhere.close();
  await house.close();
});
beforeEach(() => house.clear());

test("a mail whose logo cannot be fetched, or comes too slowly, is not sent without it but tried again", async () => {
  for (const [url, word] of [
    ["http://127.0.0.1:1/logo.png", "template:NetworkError"],
    [`${elsewhere.url}/logo.png`, "template:503"],
  ] as const) {
    await house.clear();
    const process = house.process({ config: [[templateSettings.brandLogo, url]] });
    await house.mail(sample("ada@example.com"));
    await house.run(send, process);
    await house.callbacks(process);
    expect(house.outbox()).toEqual([]);
    expect((await house.counts(emailSendStats)).words).toEqual({ failed_transiently: { [word]: 1 } });
    expect(await house.length(keys.retrying())).toBe(1);
    await house.base.clock.advance(16);
    await house.run(send);
    expect(house.outbox()).toHaveLength(1);
  }
});

const breaks = () => {
  throw new TypeError("the template is broken");
};
const rendering = (instead: () => { html: string; text: string }) =>
  vi.spyOn(book.get("sample"), "render").mockImplementation(instead);
const attaching = (instead: () => never) => vi.spyOn(book.get("sample"), "attachments").mockImplementation(instead);

test.each([
  ["breaks", () => rendering(breaks), "failed_transiently", "template:500"],
  [
    "renders more than a mail may hold",
    () => rendering(() => ({ html: "x".repeat(524_289), text: "x" })),
    "failed_permanently",
    "template:InternalError",
  ],
  ["cannot make its attachments", () => attaching(breaks), "failed_permanently", "template:InternalError"],
] as const)("a mail whose template %s is not sent, and its failure says why", async (_, spoil, event, word) => {
  const spy = spoil();
  await house.mail(sample("ada@example.com"));
  await house.run(send);
  spy.mockRestore();
  expect(house.outbox()).toEqual([]);
  const { events, words } = await house.counts(emailSendStats);
  expect([events, words]).toEqual([{ queued: 1, attempted: 1, [event]: 1 }, { [event]: { [word]: 1 } }]);
  await house.callbacks();
  expect(await house.length(keys.retrying())).toBe(event === "failed_transiently" ? 1 : 0);
  // It did not hold the others up either: the next one goes at once.
  await house.mail(sample("bea@example.com"));
  await house.run(send);
  expect(house.outbox().map(({ to }) => to)).toEqual(["bea@example.com"]);
});

test("a run rests 2, 4, then 8 s after each failure that the next mail would share, and sends one at a time until one is taken", async () => {
  const people = ["ada", "bea", "cy", "dora"].map((name) => sample(`${name}@example.com`));
  const lasting = async (process = house.ctx) => {
    await house.clear();
    for (const each of people) await house.mail(each);
    const began = house.base.clock.monotonic();
    await house.run(send, process);
    return house.base.clock.monotonic() - began;
  };
  const config = (url: string) => [
    [templateSettings.brandLogo, url] as const,
    // One at a time, so that each failure is a trouble of its own.
    [settings.window, 1] as const,
  ];
  const unreachable = await lasting(house.process({ config: config("http://127.0.0.1:1/logo.png") }));
  expect(unreachable).toBeGreaterThanOrEqual(2 + 4 + 8);
  expect((await house.counts(emailSendStats)).words).toEqual({ failed_transiently: { "template:NetworkError": 4 } });
  expect(await lasting()).toBeLessThan(2);
  expect(house.outbox()).toHaveLength(4);
});
