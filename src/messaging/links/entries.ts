import { z } from "zod";
import { decimal, fields, json, matching, text } from "../../kernel/keyspace/index.ts";

export const CODE = /^[A-Za-z0-9_-]{1,255}$/;
export const LINK_UID = /^crl_utl_[A-Za-z0-9_-]{22}$/;
export const CLICK_UID = /^crl_utlc_[A-Za-z0-9_-]{22}$/;

/** How a use of a link was told: when somebody landed, or when they signed in right after. */
export const TRACK_TYPES = ["on_click", "post_login"] as const;
export type TrackType = (typeof TRACK_TYPES)[number];

export const linkCode = matching(CODE, "code of a link");
export const clickUid = matching(CLICK_UID, "uid of a click");

const Extra = z.record(z.string(), z.unknown());
export const linkExtra = json(Extra, { shape: "JSON object" });

export const linkHash = fields({
  uid: matching(LINK_UID, "uid of a link"),
  code: linkCode,
  touch_uid: text,
  page_identifier: text,
  page_extra: linkExtra,
  preview_identifier: text,
  preview_extra: linkExtra,
  created_at: decimal,
});

/** Where a link leads and how it looks before it is followed. */
export interface LinkTarget {
  readonly page_identifier: string;
  readonly page_extra: Readonly<Record<string, unknown>>;
  readonly preview_identifier: string;
  readonly preview_extra: Readonly<Record<string, unknown>>;
}

export interface Link extends LinkTarget {
  readonly uid: string;
  readonly code: string;
  readonly touch_uid: string;
  readonly created_at: number;
}

export const BufferedClick = z
  .strictObject({
    uid: z.string().regex(CLICK_UID),
    clicked_at: z.number(),
    visitor_uid: z.string().optional(),
    user_sub: z.string().optional(),
    track_type: z.enum(TRACK_TYPES),
    parent_uid: z.string().regex(CLICK_UID).optional(),
  })
  .refine((click) => (click.parent_uid !== undefined) === (click.track_type === "post_login"), {
    message: "a parent belongs to post_login, and only to it",
  });
export type BufferedClick = z.output<typeof BufferedClick>;
export const bufferedClick = json(BufferedClick);

/** A click whose link is being stored, or whose parent waits here too. Empty texts stand for what is not known. */
export const delayedHash = fields({
  uid: clickUid,
  link_code: linkCode,
  track_type: matching(/^(on_click|post_login)$/, "`on_click` or `post_login`"),
  parent_uid: text,
  user_sub: text,
  visitor_uid: text,
  clicked_at: decimal,
});

export interface DelayedClick extends BufferedClick {
  readonly link_code: string;
}
