import { Command } from "commander";
import { forceRelease, listLocks } from "../../mechanisms/lock/index.ts";
import {
  discardQuarantined,
  listQuarantined,
  quarantinedQueues,
  requeueQuarantined,
} from "../../mechanisms/quarantine/index.ts";
import { columns, readableTime } from "./columns.ts";
import type { Io } from "./io.ts";
import type { Open } from "./open.ts";

const PREVIEW = 60;
const PAGE = 100;

const seconds = (value: number | undefined) => (value === undefined ? "-" : `${Math.round(value)} s`);

/** Who holds what, and the way out when a holder will not let go. */
export function locksCommand(open: Open, io: Io): Command {
  const locks = new Command("locks")
    .summary("see who holds which lock, and free one by force")
    .description(
      "Every lock ends with its holder within two minutes, so freeing one by hand is rarely needed. A holder that is still " +
        "alive notices, stops, and can no longer change what the lock protects.",
    );
  locks
    .command("list")
    .summary("list the locks that are held now")
    .action(() =>
      open(async (ctx) => {
        const present = await listLocks(ctx, ctx.catalogue);
        if (present.length === 0) return io.out("No lock is held.");
        const rows = present.map((lock) => [
          lock.key,
          lock.malformed ? `${lock.kind}, malformed` : lock.kind,
          lock.holder ?? "-",
          seconds(lock.age),
          seconds(lock.ttl),
        ]);
        for (const line of columns([["LOCK", "KIND", "HOLDER", "HELD FOR", "ENDS IN"], ...rows])) io.out(line);
      }),
    );
  locks
    .command("release <key>")
    .summary("free a lock, whoever holds it")
    .action((key: string) =>
      open(async (ctx) => {
        await forceRelease(ctx, ctx.catalogue, key);
        io.out(`${key} is free.`);
      }),
    );
  return locks;
}

/** What no consumer could read: look at it, correct it, send it back, or let it go. */
export function quarantineCommand(open: Open, io: Io): Command {
  const quarantine = new Command("quarantine")
    .summary("look at entries that could not be read; correct, re-drive or discard them")
    .description(
      "An entry that is not what its queue declares is set aside here with the reason, and blocks nothing. It stays until " +
        "somebody decides.",
    );
  quarantine
    .command("list [queue]")
    .summary("list the queues with quarantined entries, or the entries of one")
    .action((queue: string | undefined) => open(async (ctx) => (queue ? listEntries(ctx, queue) : listQueues(ctx))));
  quarantine
    .command("requeue <queue> <id>")
    .summary("send an entry back to its queue, as it is or corrected")
    .option("-c, --corrected <text>", "what goes back instead")
    .option("-m, --member <member>", "for pending sets: whose entry it is")
    .action((queue: string, id: string, options: { corrected?: string; member?: string }) =>
      open(async (ctx) => {
        await requeueQuarantined(ctx, ctx.catalogue, queue, id, options);
        io.out(`${id} is back in ${queue}.`);
      }),
    );
  quarantine
    .command("discard <queue> <id>")
    .summary("forget an entry for good")
    .action((queue: string, id: string) =>
      open(async (ctx) => {
        await discardQuarantined(ctx, queue, id);
        io.out(`${id} is gone.`);
      }),
    );

  async function listQueues(ctx: Parameters<Parameters<Open>[0]>[0]): Promise<void> {
    const queues = await quarantinedQueues(ctx);
    if (queues.length === 0) return io.out("Nothing is quarantined.");
    const rows = queues.map(({ queue, length }) => [queue, String(length)]);
    for (const line of columns([["QUEUE", "ENTRIES"], ...rows])) io.out(line);
  }

  async function listEntries(ctx: Parameters<Parameters<Open>[0]>[0], queue: string): Promise<void> {
    const entries = await listQuarantined(ctx, queue, { limit: PAGE });
    if (entries.length === 0) return io.out(`Nothing of ${queue} is quarantined.`);
    const secret = ctx.catalogue.match(queue)?.entry.secret ?? false;
    const rows = entries.map((entry) => {
      const raw = "raw" in entry ? entry.raw : `base64 ${entry.raw_base64}`;
      const shown = raw.length > PREVIEW ? `${raw.slice(0, PREVIEW)}…` : raw;
      return [entry.id, readableTime(entry.quarantined_at), entry.reason, secret ? "(secret)" : JSON.stringify(shown)];
    });
    for (const line of columns([["ID", "SINCE", "REASON", "ENTRY"], ...rows])) io.out(line);
  }

  return quarantine;
}
