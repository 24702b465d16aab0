import type { Context } from "../../jobs/context.ts";
import { createLinks, linkCallbacks, type NewLink } from "../../messaging/links/service.ts";
import { newTouchUid, sendTouches, type TouchChannel } from "../../messaging/touch/service.ts";
import type { Person } from "./cast.ts";

/** Something that the app tells somebody. */
export interface News {
  readonly person: Person;
  readonly slug: string;
  readonly channel: TouchChannel;
  readonly parameters?: Readonly<Record<string, unknown>>;
}

/** Sends news as an app would: links first, so that the words can name them, then the touches. */
export async function tell(ctx: Context, news: readonly News[]): Promise<void> {
  if (news.length === 0) return;
  const named = news.map((one) => ({ ...one, uid: newTouchUid() }));
  const wishes = named.flatMap(({ uid, channel }) => linksIn(channel, uid));
  const made = wishes.length === 0 ? [] : await createLinks(ctx, wishes);
  await sendTouches(
    ctx,
    named.map(({ uid, person, slug, channel, parameters = {} }) => {
      const links = made.filter(({ touchUid }) => touchUid === uid);
      const [page, leave] = links;
      const callbacks = linkCallbacks(links.map(({ code }) => code));
      const urls = {
        ...(page ? { url: channel === "sms" ? page.shortUrl : page.url } : {}),
        ...(leave ? { unsubscribe_url: leave.url } : {}),
      };
      return {
        ...{ uid, userSub: person.sub, slug, channel },
        parameters: { name: person.given, ...parameters, ...urls },
        ...(page ? { successCallback: callbacks.success, failureCallback: callbacks.failure } : {}),
      };
    }),
  );
}

/** Notifications open the app by themselves, texts carry one link, mails a second one to leave by. */
function linksIn(channel: TouchChannel, touchUid: string): readonly NewLink[] {
  const page = { identifier: "home" };
  if (channel === "push") return [];
  if (channel === "sms") return [{ touchUid, page, codeStyle: "short" }];
  const leave = { identifier: "unsubscribe", extra: { list: "news" } };
  return [
    { touchUid, page },
    { touchUid, page: { identifier: "unsubscribe" }, preview: leave, codeStyle: "long" },
  ];
}
