import { createTransport } from "nodemailer";
import { afterEach, beforeEach, expect, it } from "vitest";
import { eventually } from "../../test/harness/facts.ts";
import type { Fate } from "./fates.ts";
import { openStage, type Stage } from "./stage.fixture.ts";

let stage: Stage;
beforeEach(async () => {
  stage = await openStage();
});
afterEach(() => stage.close());

interface SmtpFailure {
  readonly responseCode?: number;
  readonly code?: string;
}
const send = async (
  options: { to?: string; auth?: { user: string; pass: string }; on?: Stage; unsubscribe?: string } = {},
) => {
  const { hostname: host, port } = new URL((options.on ?? stage).sandbox.smtpUrl);
  const transport = createTransport({ host, port: Number(port), auth: options.auth, ignoreTLS: true });
  try {
    return await transport.sendMail({
      from: "Carillon <hello@example.com>",
      to: options.to ?? "ada@example.com",
      subject: "Guten Morgen",
      text: "Zeit für eine Übung",
      html: "<p>Zeit für eine <b>Übung</b></p>",
      headers: options.unsubscribe
        ? {
            "List-Unsubscribe": `<mailto:off@example.com>, <${options.unsubscribe}>`,
            "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
          }
        : {},
      attachments: [{ filename: "plan.txt", content: "first breathe" }],
    });
  } finally {
    transport.close();
  }
};
const failure = (options: Parameters<typeof send>[0] = {}) =>
  send(options).then(
    () => ({}),
    ({ responseCode, code }: SmtpFailure) => ({ responseCode, code }),
  );

it("a mail over SMTP is kept whole, and stands in the inbox beside all others", async () => {
  const { messageId } = await send();
  const [message] = stage.sandbox.inbox.all();
  expect(message).toMatchObject({
    channel: "email",
    provider: "smtp",
    provider_id: messageId.replaceAll(/[<>]/g, ""),
    to: "ada@example.com",
    from: "hello@example.com",
    subject: "Guten Morgen",
    mail: { attachments: [{ filename: "plan.txt", content_type: "text/plain", size: 13, inline: false }] },
  });
  expect(message!.mail!.text!.trim()).toBe("Zeit für eine Übung");
  expect(message!.mail!.html).toContain("<b>Übung</b>");
});

it("the mail server refuses receivers who do not exist, with the code that says so", async () => {
  expect(await failure({ to: "bounce@simulator.amazonses.com" })).toMatchObject({
    responseCode: 550,
    code: "EENVELOPE",
  });
  expect(stage.sandbox.inbox.size).toBe(0);
});

it("the mail server says faults in the language of SMTP", async () => {
  const answer = async (error: "throttle" | "500" | "503" | "MessageRejected" | "credentials") => {
    stage.sandbox.knobs.patch({ ses: { error, fail_next: 1 } });
    return ((await failure()) as SmtpFailure).responseCode;
  };
  expect(await answer("throttle")).toBe(454);
  expect(await answer("500")).toBe(451);
  expect(await answer("503")).toBe(421);
  expect(await answer("MessageRejected")).toBe(554);
  expect(await answer("credentials")).toBe(535);
  expect(stage.sandbox.inbox.size).toBe(0);
  stage.sandbox.knobs.patch({ ses: { max_per_second: 1 } });
  expect([await failure(), ((await failure()) as SmtpFailure).responseCode]).toEqual([{}, 454]);
  const now = stage.clock.now();
  stage.sandbox.knobs.patch({ ses: { max_per_second: null, outage: { from: now, until: now + 1 } } });
  expect(((await failure()) as SmtpFailure).responseCode).toBe(421);
});

it("the mail server keeps to the quota of a day, and lets a day pass", async () => {
  stage.sandbox.knobs.patch({ ses: { quota_24h: 2 } });
  const codes = async (times: number) => {
    const seen: (number | undefined)[] = [];
    for (let time = 0; time < times; time++) seen.push(((await failure()) as SmtpFailure).responseCode);
    return seen;
  };
  expect(await codes(3)).toEqual([undefined, undefined, 454]);
  await stage.clock.advance(86_401);
  expect(await codes(1)).toEqual([undefined]);
});

it("what is set for one receiver happens at the mail server too", async () => {
  const codeFor = async (fate: Fate, to = "ada@example.com") => {
    stage.sandbox.knobs.patch({ recipients: { deliver: { [to]: fate } } });
    return ((await failure({ to })) as SmtpFailure).responseCode;
  };
  expect(await codeFor({ fail: "permanent" })).toBe(550);
  expect(await codeFor({ fail: "transient", times: 1 })).toBe(450);
  expect(stage.sandbox.inbox.size).toBe(0);
  expect(await failure()).toEqual({});
  expect(await codeFor({ after: 5 }, "bounce@simulator.amazonses.com")).toBe(550);
  expect(await codeFor("never", "bounce@simulator.amazonses.com")).toBeUndefined();
  expect(stage.sandbox.inbox.size).toBe(2);
});

it("the mail server cuts the connection, or keeps the mail and says nothing", async () => {
  stage.sandbox.knobs.patch({ ses: { error: "reset", fail_next: 1 } });
  expect((await failure()) as SmtpFailure).toMatchObject({ code: expect.stringMatching(/^E(CONNECTION|SOCKET)$/) });
  expect(stage.sandbox.inbox.size).toBe(0);
  stage.sandbox.knobs.patch({ ses: { error: "timeout-after-accept", fail_next: 1 } });
  const waiting = failure();
  await eventually(() => stage.sandbox.inbox.size === 1);
  await stage.sandbox.close();
  // What ends the wait is the server's end, not an answer to the mail.
  expect(await waiting).toMatchObject({ responseCode: 421 });
});

it("the mail server takes anybody, unless credentials are set", async () => {
  expect(await failure({ auth: { user: "anybody", pass: "anything" } })).toEqual({});
  const guarded = await openStage({ secrets: { smtp: { user: "carillon", password: "s3cret" } } });
  expect(await failure({ on: guarded })).toMatchObject({ responseCode: 530 });
  expect(await failure({ on: guarded, auth: { user: "carillon", pass: "wrong" } })).toMatchObject({ code: "EAUTH" });
  expect(await failure({ on: guarded, auth: { user: "carillon", pass: "s3cret" } })).toEqual({});
  await guarded.close();
});

it("a mail is unsubscribed from with one click, at this house only", async () => {
  await send({ unsubscribe: `${stage.house.url}/api/1/u/t` });
  await send({ unsubscribe: "https://elsewhere.example/api/1/u/t" });
  await send();
  await send({ unsubscribe: "http://127.0.0.1:1/api/1/u/moved?x=1" });
  const [here, elsewhere, nowhere, moved] = stage.sandbox.inbox.all();
  expect(await stage.sandbox.act(moved!, { action: "unsubscribe" })).toEqual({ answered: 200 });
  expect(stage.house.caught.at(-1)).toMatchObject({ path: "/api/1/u/moved?x=1" });
  expect(await stage.sandbox.act(here!, { action: "unsubscribe" })).toEqual({ answered: 200 });
  expect(stage.house.caught.at(-1)).toMatchObject({ path: "/api/1/u/t", body: "List-Unsubscribe=One-Click" });
  for (const message of [elsewhere!, nowhere!])
    await expect(stage.sandbox.act(message, { action: "unsubscribe" })).rejects.toMatchObject({
      code: "sandbox_action_unfit",
    });
  await expect(stage.sandbox.act(here!, { action: "bounce" })).rejects.toMatchObject({ code: "sandbox_action_unfit" });
});
