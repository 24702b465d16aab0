import { Command } from "commander";
import { messagesForAddress, type Sighting, type Trace, traceMessage } from "../../messaging/messages/service.ts";
import { columns, readableTime } from "./columns.ts";
import { CommandFailed, EXIT } from "./exit.ts";
import type { Io } from "./io.ts";
import type { Open } from "./open.ts";

const LISTED = 50;
const KINDS: Readonly<Record<string, string>> = { push: "a notification", sms: "a text", email: "a mail" };

export function traceCommand(open: Open, io: Io): Command {
  return new Command("trace")
    .summary("where a message is now, and what happened to it")
    .description(
      `Looks for a notification, a text or a mail in all queues and jobs, and tells its story step by step.
  carillon trace crl_em_0123456789abcdefghijkl
  carillon trace --to someone@example.com     lists the messages to an address, newest first`,
    )
    .argument("[uid]", "what the call that queued the message answered")
    .option("--to <address>", "an email address, a phone number with its plus sign, or a push token")
    .option("--json", "as JSON, for programs")
    .action(async (uid: string | undefined, { to, json }: { to?: string; json?: boolean }) => {
      if ((uid === undefined) === (to === undefined)) {
        io.err("Name either a message by its uid or an address with --to.");
        throw new CommandFailed(EXIT.usage);
      }
      await open(async (ctx) => {
        if (uid === undefined) {
          const { items } = await messagesForAddress(ctx, to!, { limit: LISTED });
          if (json) io.out(JSON.stringify(items, undefined, 2));
          else if (items.length === 0) io.out("No message to that address is known.");
          else
            for (const line of columns([
              ["UID", "CHANNEL", "QUEUED", "LAST STEP", "AT"],
              ...items.map((item) => [
                item.uid,
                item.channel,
                readableTime(item.first_at),
                item.last_step,
                readableTime(item.last_at),
              ]),
            ]))
              io.out(line);
          return;
        }
        const trace = await traceMessage(ctx, uid);
        if (!trace) {
          io.err(
            `Nothing is known of a message ${uid}: it is in no queue, and no step of it is kept. \`carillon trace --to <address>\` lists messages.`,
          );
          throw new CommandFailed();
        }
        if (json) io.out(JSON.stringify(trace, undefined, 2));
        else for (const line of described(trace, ctx.clock.now())) io.out(line);
      });
    });
}

export function described(trace: Trace, now: number): string[] {
  const { uid, channel, steps, seconds } = trace;
  const last = steps.at(-1);
  const ended = last ? `It has ended, with ${last.step} at ${readableTime(last.at)}.` : "It has ended.";
  const total =
    seconds === null ? "" : `, ${duration(seconds)} ${trace.now.length > 0 ? "so far" : "from first to last"}`;
  return [
    `${uid}: ${KINDS[channel] ?? channel}${total}`,
    "",
    ...(trace.now.length === 0 ? [ended] : trace.now.flatMap((sighting) => whereabouts(sighting, now))),
    "",
    ...(steps.length === 0
      ? ["No step of it is kept."]
      : columns([
          ["AT", "STEP", "THEN FOR", "PROVIDER", "DETAIL"],
          ...steps.map(({ at, step, lasted, provider, detail }) => [
            precise(at),
            step,
            lasted === null ? "" : duration(lasted),
            provider ?? "",
            detail ?? "",
          ]),
        ])),
  ];
}

function whereabouts(sighting: Sighting, now: number): string[] {
  const { state, place, since, due, ahead, failed_tries, provider, provider_id } = sighting;
  const facts = [
    since === null ? "" : `for ${duration(now - since)}`,
    due === null ? "" : due > now ? `due in ${duration(due - now)}` : `due ${duration(now - due)} ago`,
    ahead === null ? "" : ahead === 0 ? "next" : `${ahead} before it`,
    failed_tries ? `${failed_tries} failed tries` : "",
    provider ? `provider ${provider}` : "",
    provider_id ? `id ${provider_id}` : "",
  ].filter(Boolean);
  return [`Now: ${state} (${place})`, ...(facts.length > 0 ? [`     ${facts.join(", ")}`] : [])];
}

/** Stages last milliseconds or days: two units say enough. */
export function duration(seconds: number): string {
  const s = Math.max(0, seconds);
  if (s < 1) return `${Math.round(s * 1000)} ms`;
  if (s < 60) return `${Number(s.toFixed(1))} s`;
  const [days, hours, minutes] = [Math.floor(s / 86_400), Math.floor(s / 3600) % 24, Math.floor(s / 60) % 60];
  if (days > 0) return `${days} d ${hours} h`;
  return hours > 0 ? `${hours} h ${minutes} min` : `${minutes} min ${Math.floor(s % 60)} s`;
}

/** To the millisecond: many steps fall into one second. */
function precise(at: number): string {
  return `${new Date(at * 1000).toISOString().slice(0, 23).replace("T", " ")}`;
}
