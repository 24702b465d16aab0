import { parseArgs } from "node:util";
import { peerVersion, type Row, writeResults } from "../kit.ts";
import { measureCodes } from "./codes.ts";
import { measureEmail } from "./email.ts";
import { measureAgainstPeer } from "./peer.ts";
import { measurePush } from "./push.ts";
import { measureRendering } from "./rendering.ts";
import { measureSms } from "./sms.ts";
import type { ChannelRow, Size } from "./stage.ts";
import { measureWebhooks } from "./webhooks.ts";

const PARTS: Readonly<Record<string, (size: Size) => Promise<readonly ChannelRow[]>>> = {
  push: measurePush,
  sms: measureSms,
  email: measureEmail,
  rendering: measureRendering,
  codes: measureCodes,
  webhooks: measureWebhooks,
  peer: measureAgainstPeer,
};

const NOTES = [
  "Every process, of ours and of the peers, runs with the flags that the command has Node run with.",
  "Workers are processes of their own, one or two of them on the machine's two cores, beside Redis and, where one is installed, Postgres. Providers answer at once inside them, windows are 450 mails, 500 texts and 600 notifications, paces are off. The queue is filled first; the time runs from the workers' beginning to the last callback. Each round proves that every message was sent once and called back once.",
  "Redis calls are counted where the workers send them; the server must not have run more scripts than that. Its other counts include commands inside scripts.",
  "Receipts of texts and mails are put on their lists 100 ms after the message, as the webhooks do it.",
  "The peer renders with our templates and sends through the same transport, which reports nothing later, one process on each side, 20,000 mails a round; the time ends when the provider has the last mail. It has no callbacks, which our side works in meanwhile.",
  "Where a row has no peer, the limit is the goal: rates are to reach it, times and calls to stay below.",
];

/** `npm run bench -- channels [part …] [--messages N] [--rounds N] [--campaign N]`; only a whole run is recorded. */
export async function run(args: readonly string[]): Promise<void> {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      messages: { type: "string", default: "100000" },
      rounds: { type: "string", default: "3" },
      campaign: { type: "string", default: "100000" },
    },
  });
  const size: Size = {
    messages: whole(values.messages, "--messages"),
    rounds: whole(values.rounds, "--rounds"),
    campaign: whole(values.campaign, "--campaign"),
  };
  const unknown = positionals.find((part) => !(part in PARTS));
  if (unknown) throw new Error(`There is no part ${unknown}. There are: ${Object.keys(PARTS).join(", ")}`);
  const parts = positionals.length > 0 ? positionals : Object.keys(PARTS);
  const rows: ChannelRow[] = [];
  for (const part of parts) {
    console.log(`\n${part}`);
    const measured = await PARTS[part]!(size);
    for (const row of measured) console.log(`  ${line(row)}`);
    rows.push(...measured);
  }
  if (positionals.length > 0) return console.log("\nA part alone is not recorded.");
  const peers = { bullmq: peerVersion("bullmq") };
  writeResults("channels", rows as readonly Row[], { ...size, peers, notes: NOTES });
}

function line({ metric, unit, ours, ratio, peer, ...rest }: ChannelRow): string {
  const limit = "limit" in rest && rest.limit !== null ? `  goal ${shown(rest.limit)}` : "";
  const beside = ratio === null ? limit : `  peer ${shown(peer ?? 0)}, ${ratio.toFixed(2)}x`;
  return `${metric.padEnd(64)} ${shown(ours).padStart(10)} ${unit}${beside}`;
}

const shown = (value: number) => (value >= 100 ? Math.round(value).toLocaleString("en-US") : value.toPrecision(3));

function whole(text: string, option: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1) throw new Error(`${option} must be a whole number above zero`);
  return value;
}
