import { randomInt } from "node:crypto";
import type { Context } from "../../jobs/context.ts";
import { newUid } from "../../kernel/ids.ts";
import { errors } from "./errors.ts";
import { takeUse } from "./outage.ts";
import { homePage, type OpenedPage, openPage, tagsOf } from "./pages.ts";
import { robotRule } from "./robots.ts";
import { newUse } from "./uses.ts";

/** Who follows a link, as far as the request tells. */
export interface Follower {
  readonly method: string;
  readonly headers: Parameters<typeof robotRule>[1];
  readonly userSub: string | undefined;
}

const VISITOR = /^[A-Za-z0-9_-]{1,128}$/;
/** Of those who guess codes so many in a hundred are told a success that never was, so that what they gather is worth little. */
const MADE_UP = 10;

function visitorOf({ headers }: Follower): string | undefined {
  const said = headers.visitor;
  return typeof said === "string" && VISITOR.test(said) ? said : undefined;
}

/** Follows a link: the click is kept, unless a robot made it. Answers where to go, and the click's uid for signing in. */
export async function follow(
  ctx: Context,
  code: string,
  follower: Follower,
): Promise<OpenedPage & { readonly click_uid: string }> {
  const rule = robotRule(follower.method, follower.headers);
  const who = { userSub: follower.userSub, visitorUid: visitorOf(follower) };
  const use = newUse(ctx, rule === undefined ? "on_click" : "robot", code, rule === undefined ? who : { ...who, rule });
  const { outcome, target, noted } = await takeUse(ctx, use);
  if (outcome === "dropped" && randomInt(100) < MADE_UP) return { ...homePage(ctx), click_uid: newUid("utlc") };
  // Without Redis or SQL nobody can say that there is no such link: whoever came is sent on.
  if (!target && !noted) throw errors.link_not_found();
  return { ...(target ? openPage(ctx, target, code) : homePage(ctx)), click_uid: use.click.uid };
}

/** Somebody signed in right after a click. Whether it was kept is nobody's business. */
export async function followedBySignIn(
  ctx: Context,
  code: string,
  parentUid: string,
  follower: Follower & { readonly userSub: string },
): Promise<void> {
  const { userSub } = follower;
  await takeUse(ctx, newUse(ctx, "post_login", code, { userSub, visitorUid: visitorOf(follower), parentUid }));
}

/** How a link looks. Programs that fetch it are counted as what they are; nobody who looks counts as a click. */
export async function look(ctx: Context, code: string, follower: Follower) {
  const rule = robotRule(follower.method, follower.headers);
  const who = { userSub: follower.userSub, visitorUid: visitorOf(follower) };
  const use = rule === undefined ? newUse(ctx, "look", code, who) : newUse(ctx, "robot", code, { ...who, rule });
  const { target } = await takeUse(ctx, use);
  return { tags: tagsOf(ctx, target), target };
}
