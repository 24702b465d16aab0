import { z } from "zod";
import { defineRunner, recurring } from "../../jobs/index.ts";
import { audit } from "../../kernel/keyspace/index.ts";
import { lockKeys } from "../../mechanisms/lock/index.ts";
import { AUDIT_KEPT, keys } from "./keys.ts";
import { warnOfQueues } from "./queue-watch.ts";

export const auditLock = lockKeys.runnerLock({ runner: "keyspace.audit" });

/**
 * Audits the keyspace where workers run, so that no request waits for it and whoever asked may watch. It only reads; a
 * run that dies leaves the last result as it was.
 */
export const auditKeyspace = defineRunner({
  name: "runners.keyspace.audit",
  category: 1,
  doc: "Compares every key in Redis with its declaration, counts and weighs them, and keeps what it found.",
  kwargs: z.object({ deep: z.boolean().default(false) }),
  async run(ctx, { deep }) {
    await ctx.locks.withLock(auditLock, { kind: "owner", wait: "fail" }, async () => {
      const tell = (done: number, total: number) => {
        ctx
          .progress("looking at keys", { type: "bar", at: done, of: total })
          .catch((error: unknown) => ctx.log.warn({ err: error }, "the progress of an audit could not be told"));
      };
      const result = await audit(ctx, ctx.catalogue, { invariants: ctx.catalogue.invariants, deep, onProgress: tell });
      const { commands, topology } = ctx.redis;
      const kept = keys.lastAudit.codec.encode(result as Parameters<typeof keys.lastAudit.codec.encode>[0]);
      await commands.set(topology.key(keys.lastAudit()), kept, "EX", AUDIT_KEPT);
      await ctx.progress(`${result.keys} keys, ${result.found} findings`);
    });
  },
});

export const watchQueues = defineRunner({
  name: "runners.alerting.watch_queues",
  category: 2,
  doc: "Warns when nobody takes what waits in a queue, and when a queue stays too long.",
  kwargs: z.object({}),
  run: warnOfQueues,
});

export const recurringJobs = [recurring(watchQueues, {}, { seconds: [40] })];
