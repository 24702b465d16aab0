import { setTimeout as pause } from "node:timers/promises";
import { enqueueMails } from "../../src/messaging/email/service.ts";
import { settings } from "../../src/messaging/email/settings.ts";
import { fillWithMails } from "./email.ts";
import { openBenchHouse, until } from "./house.ts";
import { type ChannelRow, goal, type Size } from "./stage.ts";
import type { WorkerKind } from "./worker.ts";

/** Milliseconds in which a code is to be with the provider, as a median. */
const GOAL_MS = 250;
const CODES = 100;
/** A line that holds codes up shows it in fewer of them. */
const LONGEST_MS = 30_000;
/** Between two codes, so that each meets the line as it is and not the code before it. */
const REST_MS = 30;

const PACED: WorkerKind = "codes at the standard pace";

interface Situation {
  readonly name: string;
  readonly kind: WorkerKind;
  readonly campaign: number;
}

/** How long a sign-in code takes from its request to the provider: alone, and past a campaign that waits. */
export async function measureCodes(size: Size): Promise<readonly ChannelRow[]> {
  const queued = `${size.campaign.toLocaleString("en-US")} mails queued`;
  const standard = settings.maxPerSecond.default as number;
  const situations: readonly Situation[] = [
    { name: "nothing else to do", kind: PACED, campaign: 0 },
    { name: `${queued}, ${standard} a second`, kind: PACED, campaign: size.campaign },
    { name: `${queued}, no limit`, kind: "codes", campaign: size.campaign },
  ];
  const rows: ChannelRow[] = [];
  for (const situation of situations) {
    const times = await timesIn(situation, Math.min(CODES, size.campaign));
    const at = (share: number) => times[Math.min(times.length - 1, Math.floor(times.length * share))]!;
    rows.push(
      goal(`sign-in code, ${situation.name}: p50`, "ms", [at(0.5)], GOAL_MS),
      goal(`sign-in code, ${situation.name}: p99`, "ms", [at(0.99)]),
    );
  }
  return rows;
}

async function timesIn({ kind, campaign }: Situation, codes: number): Promise<readonly number[]> {
  const house = await openBenchHouse(kind, 1);
  try {
    await fillWithMails(house, campaign);
    const end = await house.work();
    if (campaign > 0) await until(() => house.progress.sent > 0, "the beginning of the campaign");
    const times: number[] = [];
    const deadline = performance.now() + LONGEST_MS;
    for (let code = 0; code < codes && performance.now() < deadline; code++) {
      if (campaign > 0 && house.progress.sent >= campaign) break;
      const to = `code${code}@example.org`;
      const arrived = new Promise<void>((resolve) => {
        house.onOther = (other) => void (other === to && resolve());
      });
      const started = performance.now();
      await enqueueMails(house.outside, [{ email: to, template: "verifyEmailCode", parameters: { code: "123456" } }]);
      await arrived;
      times.push(performance.now() - started);
      await pause(REST_MS);
    }
    await end();
    if (times.length < 5) throw new Error(`only ${times.length} codes met the campaign: make it larger`);
    return times.sort((one, other) => one - other);
  } finally {
    await house.close();
  }
}
