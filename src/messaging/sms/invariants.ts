import { type Invariant, type InvariantContext, seenTwice } from "../../kernel/keyspace/index.ts";
import { brokenOnOpenDays } from "../../mechanisms/dated-counters/index.ts";
import { type AuditedSet, inTwoPlaces, type Place, pendingFaults } from "../../mechanisms/pending-set/index.ts";
import { MAX_ITEMS_PER_CALL } from "../../mechanisms/purgatory-queue/index.ts";
import { leftInPurgatories } from "../../mechanisms/run-report/index.ts";
import { smsCategory } from "../../providers/sms.ts";
import { type PendingSms, pendingHash } from "./entries.ts";
import { keys } from "./keys.ts";
import { settings } from "./settings.ts";
import { smsEventStats, smsPollingStats, smsWebhookStats } from "./stats.ts";

/** Seconds by which clocks may differ. */
const SKEW = 5;

function* faultsOf(ctx: InvariantContext, sid: string, due: number, hash: PendingSms): Generator<string> {
  const { num_changes: changes, num_failures: failures } = hash;
  const now = ctx.clock.now();
  const furthest = Math.max(ctx.config.get(settings.silence), ctx.config.get(settings.silenceWithoutCallbacks)) + SKEW;
  if (hash.message_resource_sid !== sid) yield "names another sid";
  if (smsCategory(hash.message_resource_status) !== "pending") yield `is ${hash.message_resource_status}, an end`;
  if (changes < failures) yield `changed ${changes} times and failed ${failures} times`;
  if ((hash.failure_job_last_called_at === null) !== (failures === 0))
    yield "disagrees with itself on whether its failure job was called";
  if (due > now + furthest) yield "is due later than any silence lasts";
  if (hash.message_resource_created_at < hash.send_initially_queued_at - SKEW) yield "is older than its text";
}

const PENDING: AuditedSet<PendingSms> = {
  set: keys.pending(),
  hash: (sid) => keys.pendingItem({ sid }),
  codec: pendingHash,
};

const PLACES: readonly Place[] = [
  { key: keys.toSend(), type: "list" },
  { key: keys.sendPurgatory(), type: "list" },
  { key: keys.retrying(), type: "zset" },
];

const PURGATORIES = [
  { purgatory: keys.sendPurgatory(), lock: keys.sendLock(), report: keys.sendReport },
  { purgatory: keys.recoveryPurgatory(), lock: keys.recoveryLock(), report: keys.recoveryReport },
  { purgatory: keys.eventPurgatory(), lock: keys.reconciliationLock(), report: keys.reconciliationReport },
];

export const invariants: readonly Invariant[] = [
  {
    name: "sms:pending_is_whole",
    doc: "Every sid in sms:pending has a hash of the declared shape that agrees with it, and no hash stands alone.",
    check: seenTwice((ctx) => pendingFaults(ctx, PENDING, (sid, due, hash) => faultsOf(ctx, sid, due, hash))),
  },
  {
    name: "sms:text_in_one_place",
    doc: "A text is at most once in sms:to_send, sms:send_purgatory, sms:retrying and sms:pending together.",
    check: seenTwice((ctx) => inTwoPlaces(ctx, "text", PLACES, PENDING)),
  },
  {
    name: "sms:purgatories_are_batches",
    doc: `A purgatory of texts, questions or news holds one batch at most, ${MAX_ITEMS_PER_CALL} items.`,
    async check({ redis: { commands, topology } }) {
      const sizes = await Promise.all(PURGATORIES.map(({ purgatory }) => commands.llen(topology.key(purgatory))));
      return PURGATORIES.flatMap(({ purgatory }, at) =>
        sizes[at]! > MAX_ITEMS_PER_CALL ? [`${purgatory} holds ${sizes[at]}`] : [],
      );
    },
  },
  {
    name: "sms:purgatories_are_held",
    doc: "What a run of sending texts, of asking about them or of working news in took, it finished, unless it was stopped or died; what a dead run left is taken up within ten minutes.",
    check: seenTwice((ctx) => leftInPurgatories(ctx, PURGATORIES)),
  },
  {
    name: "sms:counts_add_up",
    doc: "On every open day the counts of news, webhooks and questions to the provider add up.",
    // These are counted in one step each, so they agree at any moment; those of sending agree when a day is over.
    check: (ctx) => brokenOnOpenDays(ctx, [smsEventStats, smsWebhookStats, smsPollingStats]),
  },
];
