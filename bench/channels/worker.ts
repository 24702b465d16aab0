import { domains } from "../../src/domains.ts";
import { Worker } from "../../src/jobs/index.ts";
import type { KeyName } from "../../src/kernel/keyspace/index.ts";
import { Metrics } from "../../src/kernel/metrics.ts";
import { openRedis } from "../../src/kernel/redis/index.ts";
import { openSql } from "../../src/kernel/sql/index.ts";
import { EmailChannel, PushChannel, SmsChannel } from "../../src/providers/channels.ts";
import type { EmailProvider } from "../../src/providers/email.ts";
import type { Providers } from "../../src/providers/index.ts";
import type { PushProvider } from "../../src/providers/push.ts";
import type { SmsProvider } from "../../src/providers/sms.ts";
import { countCommands, countStatements, furnish, processorTime, type Settings } from "../furnish.ts";
import { codesPlan, mailsAtOncePlan, mailsPlan, pacedCodesPlan } from "./email.ts";
import { News } from "./news.ts";
import { pushPlan } from "./push.ts";
import { textsAtOncePlan, textsByReceiptPlan } from "./sms.ts";

/** What providers that answer at once tell of. */
export interface Stage {
  sent(index: number): void;
  /** Somebody got a message that is not one of those that are counted. */
  other(to: string): void;
  /** A report that comes later, as the webhook puts it on its list. */
  report(raw: string | Buffer): void;
}

/** A worker of one channel, whose provider answers at once, in process. */
export interface WorkerPlan {
  readonly settings: Settings;
  /** The callback that ends a message. */
  readonly success: string;
  /** Where the provider's reports go, and the job that reads them. */
  readonly news?: { readonly list: KeyName<"list">; readonly job: string };
  providers(stage: Stage): {
    readonly push?: PushProvider;
    readonly sms?: SmsProvider;
    readonly email?: EmailProvider;
  };
}

const PLANS = {
  push: pushPlan,
  "texts at once": textsAtOncePlan,
  "texts by receipt": textsByReceiptPlan,
  mails: mailsPlan,
  "mails at once": mailsAtOncePlan,
  codes: codesPlan,
  "codes at the standard pace": pacedCodesPlan,
} as const satisfies Readonly<Record<string, WorkerPlan>>;
export type WorkerKind = keyof typeof PLANS;

export interface WorkerStart {
  readonly kind: WorkerKind;
  readonly instance: string;
  readonly redisSocket: string;
  readonly sqlUrl: string;
}

export type Order = { readonly start: WorkerStart } | "begin" | "end" | "close";

/** What the worker's side asked of the two servers, and what it took of the processor. */
export interface Spent {
  /** Commands and scripts that were sent to Redis, pipelined or not. */
  readonly redis: number;
  readonly sql: number;
  /** Seconds. */
  readonly processor: number;
}

export interface Round {
  readonly spent: Spent;
  /** The messages that were given to the provider, each as often as it was. */
  readonly sent: readonly number[];
  /** The stories that callbacks were called with. */
  readonly heard: readonly string[];
  readonly alerts: readonly string[];
}

export type Told =
  | { readonly is: "ready" | "begun" }
  | { readonly is: "under way"; readonly sent: number; readonly heard: number }
  | { readonly is: "other"; readonly to: string }
  | { readonly is: "ended"; readonly round: Round };

/** Rooms whose jobs have to do with messages; the schedule of the others would only add noise. */
const SCHEDULED = new Set(["users", "operations", "contacts", "push", "sms", "email_templates", "email", "messages"]);
const TELL_EVERY_MS = 20;

const NEWLINE = 10;

/**
 * The stories that callbacks were called with, kept outside of the collected heap: tens of thousands of texts that live on
 * would have the measured process collect garbage for its observer.
 */
class Heard {
  #bytes = Buffer.allocUnsafe(2 ** 20);
  #used = 0;
  length = 0;

  add(story: string): void {
    while (this.#used + story.length + 1 > this.#bytes.length)
      this.#bytes = Buffer.concat([this.#bytes, Buffer.allocUnsafe(this.#bytes.length)]);
    this.#used += this.#bytes.write(story, this.#used, "latin1");
    this.#bytes[this.#used++] = NEWLINE;
    this.length += 1;
  }

  take(): readonly string[] {
    const stories = this.#bytes.toString("latin1", 0, this.#used).split("\n").slice(0, -1);
    [this.#used, this.length] = [0, 0];
    return stories;
  }
}

const tell = (told: Told) => void process.send!(told);

async function open({ kind, instance, redisSocket, sqlUrl }: WorkerStart) {
  const plan: WorkerPlan = PLANS[kind];
  const connect = async () => {
    const connection = openRedis({ kind: "socket", path: redisSocket });
    await connection.ready();
    return connection;
  };
  const [redis, reporting] = [await connect(), await connect()];
  const sql = await openSql({ kind: "postgres", url: sqlUrl });
  const commands = countCommands(redis);
  const statements = countStatements(sql);
  let sent: number[] = [];
  const heard = new Heard();
  const bare = furnish({
    redis,
    sql,
    settings: plan.settings,
    hostname: `jobs-bench-${instance}`,
    scheduled: domains.filter(({ name }) => SCHEDULED.has(name)),
    runner(runner) {
      const { name, runMany } = runner;
      if (name !== plan.success || !runMany) return runner;
      return {
        ...runner,
        runMany: (ctx, items) => {
          for (const { data_raw } of items as unknown as { data_raw: string }[]) heard.add(data_raw);
          return runMany(ctx, items);
        },
      };
    },
  });
  const news = plan.news && new News({ ...bare, redis: reporting }, plan.news.list, plan.news.job);
  const { push, sms, email } = plan.providers({
    sent: (index) => void sent.push(index),
    other: (to) => tell({ is: "other", to }),
    report: (raw) => news?.report(raw),
  });
  const providers = {
    push: new PushChannel(bare, push ? [push] : []),
    sms: new SmsChannel(bare, sms ? [sms] : []),
    email: new EmailChannel(bare, email ? [email] : []),
  } as Partial<Providers> as Providers;
  const ctx = { ...bare, providers };

  let [before, told]: [Spent, string] = [{ redis: 0, sql: 0, processor: 0 }, ""];
  let worker: Worker | undefined;
  const spent = (): Spent => ({ redis: commands(), sql: statements(), processor: processorTime() });
  setInterval(() => {
    if (`${sent.length} ${heard.length}` === told) return;
    told = `${sent.length} ${heard.length}`;
    tell({ is: "under way", sent: sent.length, heard: heard.length });
  }, TELL_EVERY_MS);
  return {
    async begin() {
      before = spent();
      worker = new Worker({ ...ctx, metrics: new Metrics() }, bare.jobs, {
        version: "bench",
        instance,
        heartbeat: "thread",
      });
      await worker.start();
    },
    async end(): Promise<Round> {
      const now = spent();
      news?.drop();
      await worker!.stop();
      const round = {
        spent: {
          redis: now.redis - before.redis,
          sql: now.sql - before.sql,
          processor: now.processor - before.processor,
        },
        sent,
        heard: heard.take(),
        alerts: bare.alerts.recorded.map(({ text }) => text),
      };
      [sent, told] = [[], "0 0"];
      return round;
    },
  };
}

let house: Awaited<ReturnType<typeof open>>;
process.on("message", async (order: Order) => {
  if (order === "begin") {
    await house.begin();
    tell({ is: "begun" });
  } else if (order === "end") tell({ is: "ended", round: await house.end() });
  else if (order === "close") process.exit(0);
  else {
    house = await open(order.start);
    tell({ is: "ready" });
  }
});
