import { createAdminToken } from "../../src/infrastructure/access/service.ts";
import { sandboxOf } from "../../src/infrastructure/sandbox/service.ts";
import { suppressEmails } from "../../src/messaging/contacts/service.ts";
import { createDemoApp } from "../../src/surfaces/demo/app.ts";
import { channelsOf } from "../../src/surfaces/demo/cast.ts";
import { type News, tell } from "../../src/surfaces/demo/news.ts";
import type { House } from "../../src/surfaces/house.ts";
import { eventually } from "../harness/facts.ts";

export interface StillwaterScene {
  /** A touch whose link was followed. */
  readonly touchUid: string;
  /** Who followed it; somebody who can be reached on every channel. */
  readonly sub: string;
  /** The code of a link for leaving, from the foot of a mail. */
  readonly leaveCode: string;
}

const TOLD = 15;
const CHANNELS = ["email", "push", "sms"] as const;

/** The demo's app with its people, some of whom are told something now; one of them follows a link. */
export async function stillwaterScene({ ctx, url }: House): Promise<StillwaterScene> {
  const { people } = (await createDemoApp(ctx))!;
  const { knobs, inbox } = sandboxOf(ctx);
  knobs.patch({ twilio: { stepSeconds: 0.2 } });
  const everywhere = people.filter((person) => channelsOf(person).length === CHANNELS.length);
  const topics = (at: number) => [
    { slug: "session_finished", parameters: { days: 7 + at } },
    { slug: "friend_joined", parameters: { friend: everywhere[at + 1]!.given } },
    { slug: "welcome" },
    { slug: "ten_day_challenge" },
  ];
  const news: readonly News[] = Array.from({ length: Math.min(TOLD, everywhere.length - 1) }, (_, at) => ({
    person: everywhere[at]!,
    channel: CHANNELS[at % CHANNELS.length]!,
    ...topics(at)[at % 4]!,
  }));
  await ctx.jobs.enqueueNamed("runners.daily_reminders.assign_time", {});
  await tell(ctx, news);
  const lastTold = (wanted: string) => news.findLast(({ channel }) => channel === wanted)!.person;
  const follower = lastTold("sms");
  const arrived = (to: string) => eventually(() => inbox.list({ to, limit: 1 })[0], `a message to ${to}`);
  const codesIn = (words: string) => [...words.matchAll(/\/l\/([\w-]+)/g)].map(([, code]) => code!);
  const [code] = codesIn((await arrived(follower.phone!)).text);
  const leaveCode = codesIn((await arrived(lastTold("email").email!)).text).find(({ length }) => length > 60)!;
  await suppressEmails(ctx, [
    { email: everywhere.at(-1)!.email!, reason: "User", scope: "lists" },
    { email: "gone@example.com", reason: "Bounce", scope: "all", note: "mailbox does not exist" },
    { email: "angry@example.com", reason: "Complaint", scope: "all" },
  ]);
  const { token } = await createAdminToken(ctx, { label: "pictures" });
  const touchUid = await eventually(async () => {
    const headers = { authorization: `Bearer ${token}` };
    const answer = await fetch(`${url}/api/1/admin/users/${follower.sub}/touches`, { headers });
    const { items } = (await answer.json()) as { items: { touch_uid: string; channel: string }[] };
    return items.find(({ channel }) => channel === "sms")?.touch_uid;
  }, "the touch in its person's list");
  await fetch(`${url}/sandbox/api/recipients/click`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ code }),
  });
  return { touchUid, sub: follower.sub, leaveCode };
}
