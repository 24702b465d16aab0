import { openRooms, type RoomsHouse } from "../../../test/harness/rooms.ts";
import { contacts } from "../contacts/index.ts";
import { type CreatedLink, createLinks, type NewLink } from "./create.ts";
import { links } from "./index.ts";
import { recordTouches } from "./rows.ts";
import { settings } from "./settings.ts";
import { linkStats } from "./stats.ts";
import type { LinkTables } from "./tables.ts";

export const ROOT = "https://example.test";
export const PERSON = { "user-agent": "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0" };

export interface LinksHouse extends RoomsHouse {
  /** Makes a link of a touch of its own. */
  link(options?: Partial<NewLink>): Promise<CreatedLink>;
  /** The row that says that a touch arrived. */
  arrive(touchUid: string, destination?: string, sub?: string): Promise<void>;
  /** Uses a link as a browser does that is not signed in; answers the click's uid. */
  click(code: string, token?: string): Promise<string>;
  statistics(): ReturnType<RoomsHouse["counts"]>;
}

let touches = 0;

export async function openLinks(options: { readonly start?: number } = {}): Promise<LinksHouse> {
  const house = await openRooms({ rooms: [contacts, links], settings: [[settings.webRoot, ROOT]], ...options });
  return {
    ...house,
    link: async (wish = {}) =>
      (await createLinks(house.ctx, [{ touchUid: `crl_tch_${++touches}`, page: { identifier: "home" }, ...wish }]))[0]!,
    async arrive(touchUid, destination = "ada@example.com", sub = "ada") {
      const db = house.ctx.sql.tables<LinkTables>();
      const made = await recordTouches(db, [
        {
          row_uid: `crl_tch_r_${++touches}`,
          uid: touchUid,
          user_sub: sub,
          channel: "email",
          touch_point_id: null,
          destination,
          message: {},
          created_at: house.ctx.clock.now(),
        },
      ]);
      if (made.size !== 1) throw new Error("the touch was not recorded");
    },
    async click(code, token = "") {
      const answer = await house.call("POST", "/api/1/notifications/complete", {
        body: { code },
        token,
        headers: PERSON,
      });
      if (answer.statusCode !== 200) throw new Error(answer.body);
      return answer.json().click_uid;
    },
    statistics: () => house.counts(linkStats),
  };
}
