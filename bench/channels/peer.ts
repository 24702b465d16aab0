import { type Job, Worker as PeerWorker, Queue } from "bullmq";
import { Redis } from "ioredis";
import { createTransport } from "nodemailer";
import { Config } from "../../src/kernel/config.ts";
import { book, brandOf, renderTemplate } from "../../src/messaging/email_templates/service.ts";
import { measure, perSecond, temporaryRedis } from "../kit.ts";
import { addressOf, fillWithMails, indexOf, parametersOf, TEMPLATE } from "./email.ts";
import { type BenchHouse, expectSentOnce, openBenchHouse, until } from "./house.ts";
import type { ChannelRow, Size } from "./stage.ts";

export const PEER = "BullMQ 6, a nodemailer job for each mail";
/** The best of those tried for the peer. */
const CONCURRENCY = 50;

/** Enough to tell both rates, and few enough for the slower side. */
const MOST_MAILS = 20_000;

/**
 * What a team builds by hand: a queue with a job for each mail, whose worker renders it and gives it to nodemailer. It
 * renders with our templates and sends through the same transport, one that takes mails and reports nothing later, and both
 * sides have one process. The time ends when the provider has the last mail. The peer has no callbacks; ours works most of
 * them in meanwhile.
 */
export async function measureAgainstPeer(size: Size): Promise<readonly ChannelRow[]> {
  const count = Math.min(size.messages, MOST_MAILS);
  const ours = await openOurs();
  const peer = await openPeer();
  try {
    return [
      await measure(size.rounds, {
        metric: "mails that wait, rendered and sent",
        unit: "mails/s",
        peerName: PEER,
        ours: () => ours.round(count),
        peer: () => peer.round(count),
      }),
    ];
  } finally {
    await ours.close();
    await peer.close();
  }
}

async function openOurs() {
  const house = await openBenchHouse("mails at once", 1);
  return {
    async round(count: number) {
      await house.clear();
      await fillWithMails(house, count);
      let end!: Awaited<ReturnType<BenchHouse["work"]>>;
      const rate = await perSecond(count, async () => {
        end = await house.work();
        await until(() => house.progress.sent >= count, "all mails");
      });
      await until(() => house.progress.heard >= count, "all callbacks");
      expectSentOnce((await end()).sent, count, "mail");
      return rate;
    },
    close: () => house.close(),
  };
}

async function openPeer() {
  const redis = await temporaryRedis();
  const connect = () => new Redis({ path: redis.socketPath, maxRetriesPerRequest: null });
  const connection = connect();
  const queue = new Queue("mails", { connection, defaultJobOptions: { removeOnComplete: true } });
  let sent: number[] = [];
  const transport = createTransport({
    name: "instant",
    version: "1",
    send(mail, done) {
      mail.message.build((error, mime) => {
        if (error) return done(error, undefined as never);
        const index = indexOf(String(mail.message.getEnvelope().to[0]), mime)!;
        sent.push(index);
        done(null, { messageId: `mail-${index}` } as never);
      });
    },
  });
  const brand = brandOf(new Config([]));
  const template = book.get(TEMPLATE);
  const sendOne = async ({ data }: Job<{ to: string; parameters: Record<string, string> }>) => {
    const parameters = { ...data.parameters, unsubscribeUrl: "https://app.example.com/leave" };
    const { html, text } = renderTemplate(TEMPLATE, parameters, brand);
    await transport.sendMail({
      from: "Carillon <bells@carillon.example>",
      to: data.to,
      subject: template.subject(parameters as never),
      html,
      text,
    });
  };
  return {
    async round(count: number) {
      await connection.flushall();
      sent = [];
      for (let from = 0; from < count; from += 1000)
        await queue.addBulk(
          Array.from({ length: Math.min(1000, count - from) }, (_, at) => ({
            name: "mail",
            data: { to: addressOf(from + at), parameters: parametersOf(from + at) },
          })),
        );
      let worker!: PeerWorker;
      const rate = await perSecond(count, async () => {
        worker = new PeerWorker("mails", sendOne, { connection: connect(), concurrency: CONCURRENCY });
        await until(() => sent.length >= count, "all mails of the peer");
      });
      await worker.close();
      expectSentOnce(sent, count, "mail of the peer");
      return rate;
    },
    async close() {
      await queue.close();
      connection.disconnect();
      await redis.close();
    },
  };
}
