import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openContacts } from "../../messaging/contacts/contacts.fixture.ts";
import { suppressEmails } from "../../messaging/contacts/service.ts";
import { emailCommand } from "./email.ts";
import { CommandFailed } from "./exit.ts";
import type { Io } from "./io.ts";
import type { Open } from "./open.ts";
import { program } from "./program.ts";

const REVIEWED = fileURLToPath(new URL("../../../test/email-snapshots", import.meta.url));
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "carillon-email-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function terminal(environment: Record<string, string> = {}) {
  const lines: string[] = [];
  const io: Io = {
    out: (line = "") => void lines.push(line),
    err: (line = "") => void lines.push(line),
    environment,
    workingDirectory: folder,
    terminal: false,
    onSignal: () => () => {},
  };
  return { io, lines };
}

async function carillon(args: readonly string[], environment: Record<string, string> = {}) {
  const { io, lines } = terminal(environment);
  const failed = await program(io)
    .parseAsync(["node", "carillon", ...args])
    .then(
      () => false,
      (error: unknown) => {
        if (!(error instanceof CommandFailed)) throw error;
        return true;
      },
    );
  return { failed, text: lines.join("\n") };
}

const REAL = {
  CARILLON_EMAIL_PROVIDER: "ses",
  CARILLON_EMAIL_FROM: "Bells <bells@example.com>",
  CARILLON_EMAIL_PUBLIC_URL: "https://app.example.com",
  CARILLON_EMAIL_POSTAL_ADDRESS: "Bell Street 1",
  CARILLON_EMAIL_SNS_TOPIC_ARNS: "arn:aws:sns:us-east-1:1:mail",
  CARILLON_EMAIL_SES_ACCESS_KEY_ID: "key",
  CARILLON_EMAIL_SES_SECRET_ACCESS_KEY: "secret",
};

async function sesAt(answer: object | undefined) {
  const server = createServer((_request, response) => {
    response.writeHead(answer ? 200 : 403, { "content-type": "application/json" });
    response.end(JSON.stringify(answer ?? { message: "no" }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, close: () => new Promise((resolve) => server.close(resolve)) };
}

test("the mails of every template's examples look as they were last reviewed", async () => {
  const { failed, text } = await carillon(["email", "snapshot", "--folder", REVIEWED]);
  expect(failed, `${text}\nAccept with: npx carillon email snapshot --folder test/email-snapshots --update`).toBe(
    false,
  );
  expect(readFileSync(join(REVIEWED, "dailyReminder.0.txt"), "utf8")).toMatch(
    /^Subject: Your daily reminder\n\nHi Ada,/,
  );
});

test("a mail that looks different fails until somebody accepts it, and so do new and gone ones", async () => {
  const first = await carillon(["email", "snapshot"]);
  expect([first.failed, readdirSync(folder)]).toEqual([true, []]);
  expect(first.text).toContain("new      dailyReminder.0.html");
  expect((await carillon(["email", "snapshot", "--update"])).failed).toBe(false);
  expect((await carillon(["email", "snapshot"])).text).toMatch(/^\d+ files look as they were reviewed\.$/);
  const other = await carillon(["email", "snapshot"], { CARILLON_EMAIL_BRAND_NAME: "Bells" });
  expect([other.failed, other.text]).toEqual([true, expect.stringContaining("         + Bells")]);
  writeFileSync(join(folder, "email-snapshots", "old.0.html"), "x");
  writeFileSync(join(folder, "email-snapshots", "README.md"), "ours");
  expect((await carillon(["email", "snapshot"])).text).toContain("gone     old.0.html");
  await carillon(["email", "snapshot", "--update"]);
  expect(readdirSync(join(folder, "email-snapshots"))).not.toContain("old.0.html");
  expect(readdirSync(join(folder, "email-snapshots"))).toContain("README.md");
});

test("without a provider the check finds nothing to mend, and names what real mails will need", async () => {
  const { failed, text } = await carillon(["email", "check"]);
  expect(failed).toBe(false);
  expect(text).toMatch(/ok {4}templates {2}10 templates render all \d+ examples/);
  expect(text).toMatch(/warn {2}postal .*\n +→ set CARILLON_EMAIL_POSTAL_ADDRESS/);
  expect(text).toContain("mails go to the sandbox");
});

test("the check refuses what would hurt real people, each with what to do", async () => {
  const { url, close } = await sesAt(undefined);
  const { failed, text } = await carillon(["email", "check"], {
    CARILLON_EMAIL_PROVIDER: "ses",
    CARILLON_EMAIL_SES_ENDPOINT: url,
    CARILLON_EMAIL_SES_ACCESS_KEY_ID: "key",
    CARILLON_EMAIL_SES_SECRET_ACCESS_KEY: "hush-secret",
    CARILLON_EMAIL_SNS_BASE_URL: "http://127.0.0.1:1",
  });
  await close();
  expect(failed).toBe(true);
  for (const what of ["sender", "links", "receipts", "postal", "ses"])
    expect(text).toMatch(new RegExp(`fail  ${what} .*\\n +→ `));
  expect(text).toMatch(/warn {2}receipts .*\n.*sns-mail/);
  expect(text).toMatch(/^5 to mend/m);
  expect(text).not.toContain("hush-secret");
});

test("a provider that answers passes the check, with its quota", async () => {
  const { url, close } = await sesAt({
    SendQuota: { MaxSendRate: 14, Max24HourSend: 50_000, SentLast24Hours: 12 },
    SendingEnabled: true,
  });
  const { failed, text } = await carillon(["email", "check"], { ...REAL, CARILLON_EMAIL_SES_ENDPOINT: url });
  await close();
  expect([failed, text]).toEqual([false, expect.stringMatching(/ok {4}ses +takes 14 mails a second; 12 of 50000/)]);
});

test("a mail server that is not there is found, with where to look", async () => {
  const { failed, text } = await carillon(["email", "check"], {
    ...REAL,
    CARILLON_EMAIL_PROVIDER: "smtp",
    CARILLON_EMAIL_SMTP_HOST: "127.0.0.1",
    CARILLON_EMAIL_SMTP_PORT: "1",
  });
  expect([failed, text]).toEqual([
    true,
    expect.stringMatching(/fail {2}smtp +127\.0\.0\.1:1.*\n +→ check CARILLON_EMAIL_SMTP/),
  ]);
});

test("suppressed addresses leave as a file and come back from it, and bad lines are named", async () => {
  const house = await openContacts();
  await house.clear();
  const { io, lines } = terminal();
  const open: Open = (work) => work(house.ctx, undefined as never);
  const run = (...args: string[]) => emailCommand(open, io).parseAsync(["node", "email", "suppressions", ...args]);
  await suppressEmails(house.ctx, [{ email: "a@example.com", reason: "Bounce", note: "by hand" }]);
  await run("export");
  const file = `${lines.splice(0).join("\n")}\n`;
  expect(file).toMatch(/^email,reason,scope,note,created_at\r\na@example\.com,Bounce,all,by hand,.*\r\n$/);
  await house.query("delete from suppressed_emails");
  writeFileSync(join(folder, "list.csv"), file);
  await run("import", "list.csv", "--dry-run");
  await run("import", "list.csv");
  expect(lines.splice(0)).toEqual([
    "0 lines make no sense; nothing was written.",
    "1 are new, 0 stronger, 0 were known already.",
  ]);
  writeFileSync(join(folder, "bad.csv"), "email\nnobody\n");
  await expect(run("import", "bad.csv")).rejects.toThrow(CommandFailed);
  expect(lines[0]).toBe("line 2: the email is not an email address");
  await house.close();
});

test("help of the email commands teaches by example", async () => {
  const { io, lines } = terminal();
  await program(io)
    .parseAsync(["node", "carillon", "email", "snapshot", "--help"])
    .catch(() => {});
  expect(lines.join("\n")).toContain("carillon email snapshot --update");
});
