import { type Job, Worker as PeerWorker, Queue } from "bullmq";
import { Redis } from "ioredis";
import { createTransport } from "nodemailer";
import { Config } from "../../src/kernel/config.ts";
import { keys } from "../../src/messaging/email/keys.ts";
import { enqueueMails } from "../../src/messaging/email/service.ts";
import { settings } from "../../src/messaging/email/settings.ts";
import { book, brandOf, renderTemplate } from "../../src/messaging/email_templates/service.ts";
import { measure, perSecond, temporaryRedis } from "../kit.ts";
import { addressOf, InstantEmail, mailOf, parametersOf, SUCCESS, TEMPLATE } from "./email.ts";
import { openBenchHouse, until } from "./house.ts";
import { News } from "./news.ts";
import { type ChannelRow, inGroups, type Size } from "./stage.ts";

export const PEER = "BullMQ 6, a nodemailer job for each mail";
/** The best of those tried for the peer. */
const CONCURRENCY = 50;

/**
 * What a team builds by hand: a queue with a job for each mail, whose worker renders it and gives it to nodemailer. It
 * renders with our templates and sends through the same transport. It knows neither receipts nor callbacks, which our side
 * sees through in the same time.
 */
export async function measureAgainstPeer(size: Size): Promise<readonly ChannelRow[]> {
  const count = size.messages;
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
  const provider = new InstantEmail();
  const house = await openBenchHouse({
    email: provider,
    settings: [
      [settings.window, 500],
      [settings.claimSize, 500],
      [settings.maxPerSecond, 10_000_000],
    ],
  });
  provider.news = new News(house, keys.event(), "runners.emails.receipt_reconciliation");
  return {
    async round(count: number) {
      await house.clear();
      provider.sent.expect(count);
      await inGroups(count, async (from, to) => {
        await enqueueMails(
          house.outside,
          Array.from({ length: to - from }, (_, at) => mailOf(from + at)),
        );
      });
      let stop = async () => {};
      const rate = await perSecond(count, async () => {
        stop = await house.work();
        await until(() => (house.heard.get(SUCCESS)?.length ?? 0) >= count, "all callbacks");
      });
      await stop();
      provider.sent.check("mail");
      await house.expectPeace();
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
  const provider = new InstantEmail();
  const transport = createTransport({
    name: "instant",
    version: "1",
    send(mail, done) {
      mail.message.build((error, mime) => {
        if (error) return done(error, undefined as never);
        const [to] = mail.message.getEnvelope().to;
        done(null, { messageId: provider.take(String(to), mime) } as never);
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
      provider.sent.expect(count);
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
        await until(() => provider.sent.total >= count, "all mails of the peer");
      });
      await worker.close();
      provider.sent.check("mail of the peer");
      return rate;
    },
    async close() {
      await queue.close();
      connection.disconnect();
      await redis.close();
    },
  };
}
