import { generateKeyPairSync } from "node:crypto";
import type { AddressInfo } from "node:net";
import { SMTPServer, type SMTPServerOptions } from "smtp-server";
import { afterEach, describe, expect, test } from "vitest";
import { type EmailFault, emailConformance, testMail } from "./email.conformance.ts";
import { deliverOnlyTo } from "./email.ts";
import { startServer } from "./http-server.fixture.ts";
import { SmtpEmail, type SmtpOptions, sesIdIn, smtpFailure } from "./smtp.ts";

interface Arrived {
  readonly from: string;
  readonly to: string;
  readonly mime: string;
}

type Reply = { readonly code: number; readonly text: string } | "reset";

const errorOf = ({ code, text }: Exclude<Reply, string>) => Object.assign(new Error(text), { responseCode: code });

/** A real SMTP server that keeps its mails, and refuses the next ones as it is told. */
async function startSmtp(options: SMTPServerOptions = {}) {
  const accepted: Arrived[] = [];
  const refusals: Reply[] = [];
  const sockets = new Set<{ destroy(): void }>();
  const server = new SMTPServer({
    disabledCommands: ["STARTTLS"],
    authOptional: true,
    onRcptTo(_address, _session, done) {
      // A server may also close itself after it has read the mail; then it says so in its last reply.
      const closes = (reply: Reply | undefined) => reply !== "reset" && reply?.code === 421;
      const refusal = closes(refusals[0]) ? undefined : refusals.shift();
      if (refusal === undefined) return done();
      if (refusal !== "reset") return done(errorOf(refusal));
      for (const socket of sockets) socket.destroy();
    },
    onData(stream, session, done) {
      const chunks: Buffer[] = [];
      stream.on("data", (chunk: Buffer) => chunks.push(chunk));
      stream.on("end", () => {
        const refusal = refusals.shift();
        if (refusal !== undefined && refusal !== "reset") return done(errorOf(refusal));
        const { mailFrom, rcptTo } = session.envelope;
        accepted.push({
          from: mailFrom ? mailFrom.address : "",
          to: rcptTo.map(({ address }) => address).join(),
          mime: Buffer.concat(chunks).toString(),
        });
        done();
      });
    },
    ...options,
  });
  // Connections that a test cuts are no news.
  server.on("error", () => {});
  server.server.on("connection", (socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.server.address() as AddressInfo;
  return {
    port,
    accepted,
    refusals,
    close: () =>
      new Promise<void>((resolve) => {
        for (const socket of sockets) socket.destroy();
        server.close(() => resolve());
      }),
  };
}

const FAULTS: Record<EmailFault, Reply> = {
  throttle: { code: 454, text: "Throttling failure: Maximum sending rate exceeded" },
  server: { code: 421, text: "4.3.2 Service closing" },
  rejected: { code: 554, text: "5.7.1 Message rejected" },
  credentials: { code: 530, text: "5.7.0 Authentication required" },
  reset: "reset",
};

const smtpAt = (port: number, more: Partial<SmtpOptions> = {}) =>
  new SmtpEmail({ host: "127.0.0.1", port, secure: false, timeout: 10, ...more });

emailConformance("the SMTP client", {
  async open() {
    const server = await startSmtp();
    return {
      provider: smtpAt(server.port),
      control: {
        failNext: (fault: EmailFault) => void server.refusals.push(FAULTS[fault]),
        accepted: () => server.accepted,
      },
      close: server.close,
    };
  },
});

describe("the SMTP client in conversation", () => {
  const closing: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close();
  });

  async function open(options: SMTPServerOptions = {}, more: Partial<SmtpOptions> = {}) {
    const server = await startSmtp(options);
    const provider = smtpAt(server.port, more);
    closing.push(server.close, () => provider.close());
    return { server, provider };
  }
  const mail = testMail("a@example.org", "unique-1");

  test("answers with the mail's own id, and promises no receipts", async () => {
    const { server, provider } = await open();
    expect(provider.hasReceipts).toBe(false);
    expect(await provider.send(mail)).toEqual({ ok: true, messageId: "unique-1@example.com", hasReceipts: false });
    expect(server.accepted[0]).toMatchObject({ from: "house@example.com", to: "a@example.org" });
    expect(await provider.quota()).toBeUndefined();
  });

  test("does not send a mail that could not be told from others", async () => {
    const { server, provider } = await open();
    const nameless = { ...mail, mime: Buffer.from("Subject: x\r\n\r\nMessage-ID: <in@the.body>\r\n") };
    expect(await provider.send(nameless)).toMatchObject({ identifier: "SESInternalError", retryable: false });
    expect(server.accepted).toEqual([]);
  });

  test("logs in, and takes a refused password for wrong credentials", async () => {
    const onAuth: SMTPServerOptions["onAuth"] = ({ username, password }, _session, done) =>
      password === "right" ? done(null, { user: username ?? "" }) : done(new Error("Invalid username or password"));
    const guarded = { authOptional: false, onAuth };
    const right = await open(guarded, { auth: { user: "us", pass: "right" } });
    expect(await right.provider.send(mail)).toMatchObject({ ok: true });
    const wrong = await open(guarded, { auth: { user: "us", pass: "wrong" } });
    expect(await wrong.provider.send(mail)).toMatchObject({ credentials: true, subidentifier: "SMTP535" });
    const none = await open(guarded);
    expect(await none.provider.send(mail)).toMatchObject({ credentials: true, subidentifier: "SMTP530" });
  });

  test("a mailbox that does not exist is told apart from a policy that refuses", async () => {
    const { server, provider } = await open();
    server.refusals.push(
      { code: 550, text: "5.1.1 no such user" },
      { code: 550, text: "5.7.1 blocked by policy" },
      { code: 452, text: "4.2.2 mailbox full" },
    );
    const [gone, blocked, full] = [await provider.send(mail), await provider.send(mail), await provider.send(mail)];
    expect(gone).toMatchObject({ subidentifier: "SMTP550", retryable: false, unreachable: true });
    expect(blocked).toMatchObject({ identifier: "SESClientError", subidentifier: "SMTP550", retryable: false });
    expect(blocked).not.toHaveProperty("unreachable");
    expect(full).toMatchObject({ identifier: "SESServerError", subidentifier: "SMTP452", retryable: true });
    expect(full).not.toHaveProperty("outage");
  });

  test("signs mails with DKIM where a key is given", async () => {
    const { privateKey } = generateKeyPairSync("rsa", {
      modulusLength: 2048,
      publicKeyEncoding: { type: "spki", format: "pem" },
      privateKeyEncoding: { type: "pkcs8", format: "pem" },
    });
    const dkim = { domainName: "example.com", keySelector: "k1", privateKey };
    const { server, provider } = await open({}, { dkim });
    expect(await provider.send(mail)).toMatchObject({ ok: true });
    expect(server.accepted[0]!.mime).toMatch(/^DKIM-Signature: [\s\S]*d=example\.com;[\s\S]*s=k1;/);
    expect(server.accepted[0]!.mime).toContain("Subject: Hello");
  });

  test("a DKIM signature covers both headers of a one-click unsubscription", async () => {
    const { privateKey } = generateKeyPairSync("rsa", {
      modulusLength: 2048,
      publicKeyEncoding: { type: "spki", format: "pem" },
      privateKeyEncoding: { type: "pkcs8", format: "pem" },
    });
    const { server, provider } = await open({}, { dkim: { domainName: "example.com", keySelector: "k1", privateKey } });
    const headers =
      "List-Unsubscribe: <https://example.com/u>\r\nList-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n";
    await provider.send({ ...mail, mime: Buffer.concat([Buffer.from(headers), mail.mime]) });
    const signature = /^DKIM-Signature:([\s\S]*?)\r\n(?!\s)/m.exec(server.accepted[0]!.mime)![1]!;
    const signed = /[\s;]h=([^;]*);/.exec(signature)![1]!.replaceAll(/\s/g, "").toLowerCase().split(":");
    expect(signed).toEqual(expect.arrayContaining(["from", "subject", "list-unsubscribe", "list-unsubscribe-post"]));
  });

  test("a server that says nothing is given up", async () => {
    const { server, provider } = await open(
      { onConnect: () => {} },
      // Real time passes in the library's own sockets, so the patience of this test is short.
      { timeout: 0.2 },
    );
    expect(await provider.send(mail)).toMatchObject({
      identifier: "SESNetworkError",
      retryable: true,
      outage: true,
      untaken: true,
    });
    expect(server.accepted).toEqual([]);
  });

  test("a port that nobody listens on is a connection error", async () => {
    const gone = await startServer(() => {});
    await gone.close();
    const provider = smtpAt(Number(new URL(gone.url).port));
    closing.push(() => provider.close());
    expect(await provider.send(mail)).toMatchObject({
      identifier: "SESNetworkError",
      subidentifier: "ConnectionError",
      backoff: true,
      untaken: true,
    });
  });

  test("a server that goes away with the mail may have taken it", async () => {
    let taken = 0;
    const { server, provider } = await open({
      onData(stream) {
        stream.resume();
        stream.on("end", () => {
          taken += 1;
          void server.close();
        });
      },
    });
    const outcome = await provider.send(mail);
    expect(outcome).toMatchObject({ ok: false, identifier: "SESNetworkError", outage: true });
    expect(outcome).not.toHaveProperty("untaken");
    expect(taken).toBe(1);
  });

  test("a server that offers no TLS gets no mail, unless it is on this machine", async () => {
    const server = await startSmtp();
    // Any name but that of loopback: it is resolved to the same machine, but the client cannot know that.
    const provider = smtpAt(server.port, { host: "0.0.0.0" });
    closing.push(server.close, () => provider.close());
    expect(await provider.send(mail)).toMatchObject({ ok: false, identifier: "SESNetworkError" });
    expect(server.accepted).toEqual([]);
  });
});

test("hosts of SES give their own id and promise receipts", () => {
  const ses = new SmtpEmail({ host: "email-smtp.eu-west-1.amazonaws.com", port: 587, secure: false, timeout: 10 });
  expect(ses.hasReceipts).toBe(true);
  expect(sesIdIn("250 Ok 0102018a-1-000000")).toBe("0102018a-1-000000");
  expect(sesIdIn("250 2.0.0 queued as 77")).toBeUndefined();
});

test.each<[object, object]>([
  [
    { code: "EAUTH", responseCode: 454 },
    { identifier: "SESServerError", subidentifier: "SMTP454", retryable: true },
  ],
  [{ code: "EAUTH" }, { identifier: "SESClientError", subidentifier: "EAUTH", credentials: true }],
  [{ code: "EDNS" }, { identifier: "SESNetworkError", subidentifier: "ConnectionError" }],
  [{ code: "ETIMEDOUT" }, { identifier: "SESNetworkError", subidentifier: "TimeoutError" }],
  [{ code: "EENVELOPE" }, { identifier: "SESClientError", subidentifier: "EENVELOPE", retryable: false }],
  [
    { code: "EMESSAGE", responseCode: 552 },
    { identifier: "SESClientError", subidentifier: "SMTP552" },
  ],
  [{}, { identifier: "SESInternalError", subidentifier: "Error", retryable: false }],
])("an SMTP error with %o has its meaning", (parts, expected) => {
  expect(smtpFailure(Object.assign(new Error("no"), parts))).toMatchObject({ ok: false, ...expected });
});

test("while mail is fenced in, only listed addresses and domains get any", async () => {
  const server = await startSmtp();
  const provider = deliverOnlyTo(smtpAt(server.port), ["Me@Example.org", "@staging.example"]);
  const fates = [];
  for (const to of ["me@example.org", "x@STAGING.example", "you@example.org", "me@example.org.evil.test"])
    fates.push(await provider.send(testMail(to)));
  expect(fates.map(({ ok }) => ok)).toEqual([true, true, false, false]);
  expect(fates[2]).toMatchObject({ identifier: "SESClientError", subidentifier: "SuppressedInDevEnvironment" });
  expect(server.accepted.map(({ to }) => to)).toEqual(["me@example.org", "x@staging.example"]);
  await provider.close();
  await server.close();
});
