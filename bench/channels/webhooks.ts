import { type ChildProcess, fork } from "node:child_process";
import { createHash, randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { fileURLToPath } from "node:url";
import { signTwilioRequest } from "../../src/providers/twilio-signature.ts";
import { CERTIFICATE_PATH, snsCertificate, snsSignature } from "../../src/sandbox/sns-signer.ts";
import { median, type Row, temporaryRedis } from "../kit.ts";
import type { ServerPlan } from "./webhooks-server.ts";

const AUTH_TOKEN = "0123456789abcdef0123456789abcdef";
const PUBLIC_URL = "https://app.example.com";
const TOPIC = "arn:aws:sns:us-east-1:000000000000:mail";
const PEERS = {
  bare: "a bare Fastify route with a body parser",
  checking: "a bare Fastify route with a body parser that checks the signature",
} as const;
type Peer = keyof typeof PEERS;
/** Connections of the load, kept open, with one request under way on each: providers do not pipeline. */
const CONNECTIONS = 128;
const UNDER_WAY = 1;
/** Different requests that are sent in turn. */
const DIFFERENT = 2_000;
/** Requests of a round; the first two rounds of each side only warm it up. */
const COUNT = 60_000;
const WARM_UP = 2;

interface Kind {
  readonly name: string;
  readonly requests: readonly Buffer[];
  readonly peers: readonly Peer[];
}

/**
 * Requests per second of the two webhooks beside a bare route, each side in a process of its own with one thread that serves.
 * The processor time per request is given too: it does not depend on what else the machine does.
 */
export async function measureWebhooks({ rounds }: { readonly rounds: number }): Promise<readonly Row[]> {
  const redis = await temporaryRedis();
  const certificates = createServer((_request, response) => void snsCertificate().then((pem) => response.end(pem)));
  certificates.listen(0, "127.0.0.1");
  await once(certificates, "listening");
  const snsUrl = `http://127.0.0.1:${(certificates.address() as AddressInfo).port}`;
  const { socketPath } = redis;
  const plan = { socketPath, authToken: AUTH_TOKEN, publicUrl: PUBLIC_URL, topicArn: TOPIC, snsUrl };
  const served = {
    ours: await startServer({ ...plan, side: "ours" }),
    bare: await startServer({ ...plan, side: "bare" }),
    checking: await startServer({ ...plan, side: "checking" }),
  };
  const { commands } = await redis.connect();
  try {
    const rows: Row[] = [];
    for (const kind of [twilioRequests(), await snsRequests(snsUrl)]) {
      const results: Record<keyof typeof served, { rate: number; cpu: number }[]> = {
        ours: [],
        bare: [],
        checking: [],
      };
      const sides = ["ours" as const, ...kind.peers];
      for (let round = 0; round < WARM_UP + rounds; round++) {
        for (const side of round % 2 === 1 ? sides.toReversed() : sides) {
          await commands.flushall();
          results[side].push(await loadedBy(kind, served[side]));
        }
      }
      const row = (peer: Peer, metric: string, unit: string, field: "rate" | "cpu"): Row => {
        const of = (side: keyof typeof served) => results[side].slice(WARM_UP).map((one) => one[field]);
        const [mine, theirs] = [median(of("ours")), median(of(peer))];
        const ratio = field === "rate" ? mine / theirs : theirs / mine;
        const both = { ours: of("ours"), peer: of(peer) };
        return { metric, unit, ours: mine, peer: theirs, peerName: PEERS[peer], ratio, rounds: both };
      };
      for (const peer of kind.peers) {
        rows.push(row(peer, `${kind.name}: requests`, "requests/s", "rate"));
        rows.push(row(peer, `${kind.name}: processor time of the server`, "µs/request", "cpu"));
      }
    }
    return rows;
  } finally {
    for (const { child } of Object.values(served)) child.send("stop");
    certificates.close();
    await redis.close();
  }
}

interface Served {
  readonly child: ChildProcess;
  readonly port: number;
  cpu(): Promise<number>;
}

async function startServer(plan: ServerPlan): Promise<Served> {
  const file = fileURLToPath(
    new URL(`./webhooks-server${import.meta.url.endsWith(".ts") ? ".ts" : ".js"}`, import.meta.url),
  );
  const child = fork(file, {
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  const hear = async <T>() => (await once(child, "message"))[0] as T;
  child.send(plan);
  const { port } = await hear<{ port: number }>();
  return {
    child,
    port,
    async cpu() {
      child.send("cpu");
      const { cpu } = await hear<{ cpu: NodeJS.CpuUsage }>();
      return cpu.user + cpu.system;
    },
  };
}

async function loadedBy({ name, requests }: Kind, { port, cpu }: Served): Promise<{ rate: number; cpu: number }> {
  const before = await cpu();
  const started = performance.now();
  let [next, answered] = [0, 0];
  const one = async () => {
    const socket = connect({ host: "127.0.0.1", port, noDelay: true });
    await once(socket, "connect");
    await new Promise<void>((resolve, reject) => {
      let under = 0;
      let rest = "";
      const fill = () => {
        const batch: Buffer[] = [];
        while (under < UNDER_WAY && next < COUNT) {
          batch.push(requests[next++ % requests.length]!);
          under += 1;
        }
        if (batch.length > 0) socket.write(Buffer.concat(batch));
        else if (under === 0) socket.end(resolve);
      };
      socket.on("error", reject);
      socket.on("data", (chunk) => {
        const text = rest + chunk.toString("latin1");
        let from = 0;
        for (let at = text.indexOf("HTTP/1.1 "); at >= 0 && at + 12 <= text.length; ) {
          if (text[at + 9] !== "2") return reject(new Error(`${name} was answered ${text.slice(at, at + 300)}`));
          answered += 1;
          under -= 1;
          from = at + 12;
          at = text.indexOf("HTTP/1.1 ", from);
        }
        rest = text.slice(Math.max(from, text.length - 12));
        fill();
      });
      fill();
    });
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, one));
  const took = (performance.now() - started) / 1000;
  return { rate: answered / took, cpu: ((await cpu()) - before) / answered };
}

function requestOf(path: string, headers: Readonly<Record<string, string>>, body: string): Buffer {
  const lines = Object.entries({
    host: "app.example.com",
    "content-length": String(Buffer.byteLength(body)),
    ...headers,
  });
  return Buffer.from(
    `POST ${path} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n${body}`,
  );
}

/** Status callbacks as Twilio sends them. */
function twilioRequests(): Kind {
  const path = "/api/1/sms/webhook";
  const requests = Array.from({ length: DIFFERENT }, (_, index) => {
    const sid = `SM${createHash("md5").update(String(index)).digest("hex")}`;
    const fields = {
      ApiVersion: "2010-04-01",
      MessageStatus: "sent",
      SmsSid: sid,
      SmsStatus: "sent",
      To: `+1415555${String(1000 + index)}`,
      From: "+15005550006",
      MessageSid: sid,
      AccountSid: `AC${"0".repeat(32)}`,
      MessagingServiceSid: `MG${"0".repeat(32)}`,
      ErrorCode: "",
    };
    const signature = signTwilioRequest(AUTH_TOKEN, { publicUrl: PUBLIC_URL, path, fields: Object.entries(fields) });
    const headers = {
      "content-type": "application/x-www-form-urlencoded; charset=utf-8",
      "x-twilio-signature": signature,
      "user-agent": "TwilioProxy/1.1",
      accept: "*/*",
      "i-twilio-idempotency-token": randomUUID(),
    };
    return requestOf(path, headers, new URLSearchParams(fields).toString());
  });
  return { name: "status webhook of Twilio", requests, peers: ["bare"] };
}

/** Notifications about deliveries as SNS sends them. */
async function snsRequests(snsUrl: string): Promise<Kind> {
  const requests: Buffer[] = [];
  for (let index = 0; index < DIFFERENT; index++) {
    const mail = {
      timestamp: "2026-11-15T22:00:00.000Z",
      source: "bells@example.com",
      messageId: `0100018f-${index}`,
      destination: [`ada${index}@example.org`],
    };
    const delivery = {
      timestamp: "2026-11-15T22:00:01.000Z",
      processingTimeMillis: 512,
      recipients: mail.destination,
      smtpResponse: "250 2.0.0 OK",
      reportingMTA: "a8-53.smtp-out.amazonses.com",
    };
    const envelope = {
      Type: "Notification",
      MessageId: randomUUID(),
      TopicArn: TOPIC,
      Message: JSON.stringify({ notificationType: "Delivery", mail, delivery }),
      Timestamp: new Date().toISOString(),
    };
    const body = JSON.stringify({
      ...envelope,
      SignatureVersion: "2",
      Signature: await snsSignature(envelope, "2"),
      SigningCertURL: `${snsUrl}${CERTIFICATE_PATH}`,
      UnsubscribeURL: `${snsUrl}/?Action=Unsubscribe`,
    });
    const headers = {
      "content-type": "text/plain; charset=UTF-8",
      "x-amz-sns-message-type": "Notification",
      "x-amz-sns-message-id": envelope.MessageId,
      "x-amz-sns-topic-arn": TOPIC,
      "user-agent": "Amazon Simple Notification Service Agent",
    };
    requests.push(requestOf("/api/1/emails/sns-mail", headers, body));
  }
  return { name: "notification of SNS", requests, peers: ["bare", "checking"] };
}
