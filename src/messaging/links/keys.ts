import {
  expires,
  family,
  fields,
  hash,
  integer,
  list,
  mapOf,
  matching,
  string,
  zset,
} from "../../kernel/keyspace/index.ts";
import { jobLock } from "../../mechanisms/lock/index.ts";
import { reportFields } from "../../mechanisms/run-report/index.ts";
import { bufferedClick, clickUid, delayedHash, linkCode, linkHash } from "./entries.ts";

/** Seconds in which one code is tracked once, all signed-out uses are counted, and people are warned once. */
export const CODE_WINDOW = 3;
export const SIGNED_OUT_WINDOW = 5;
export const WARNING_WINDOW = 3_600;
/** Seconds in which one code takes so many addresses for leaving; whoever read one mail tries few. */
export const LEAVING_WINDOW = 3_600;
/** How long it is remembered which robots used a link. */
export const ROBOTS_KEPT = 2_592_000;

/** A code is what opens a link, and some codes end a subscription: names with one in them are not shown. */
export const keys = family("touch_links", {
  buffer: zset("touch_links:buffer", linkCode, {
    doc: "links that are not stored in SQL yet",
    score: "unix time at which the link was made",
    secret: true,
  }),
  link: hash("touch_links:buffer:{code}", linkHash, { doc: "one link that is not stored yet", secret: true }),
  clicks: list("touch_links:buffer:clicks:{code}", bufferedClick, {
    doc: "uses of a link that is not stored yet, the first on the left",
    secret: true,
  }),
  clickIndex: hash(
    "touch_links:buffer:on_clicks_by_uid:{uid}",
    fields({ code: linkCode, has_child: matching(/^[01]$/, "`0` or `1`") }),
    { doc: "finds a waiting click by its uid, and says whether somebody signed in after it" },
  ),
  toPersist: zset("touch_links:to_persist", linkCode, {
    doc: "links whose message arrived",
    score: "unix time from which to store the link",
    due: true,
    secret: true,
  }),
  persistPurgatory: zset("touch_links:persist_purgatory", linkCode, {
    doc: "links that are being stored now",
    score: "unix time from which to store the link",
    due: true,
    secret: true,
  }),
  persistLock: jobLock("touch_links:persist_job:lock", "job that stores links"),
  leakLock: jobLock("touch_links:leaked_link_detection_job:lock", "job that finds links that nobody claimed"),
  delayed: zset("touch_links:delayed_clicks", clickUid, {
    doc: "uses of links that were being stored at that moment",
    score: "unix time from which to store the click",
    due: true,
  }),
  delayedClick: hash("touch_links:delayed_clicks:{uid}", delayedHash, {
    doc: "one use of a link that waits for the link to be stored",
    secret: true,
  }),
  childOf: string("touch_links:delayed_clicks:childof:{uid}", clickUid, {
    doc: "the waiting sign-in that belongs to this click",
  }),
  delayedPurgatory: zset("touch_links:delayed_clicks_purgatory", clickUid, {
    doc: "waiting clicks that are being stored now",
    score: "unix time from which to store the click",
    due: true,
  }),
  delayedLock: jobLock("touch_links:delayed_click_persist_job:lock", "job that stores clicks that had to wait"),
  codeLimit: string("touch_links:click_ratelimit:codes:{code}", integer, {
    doc: "uses of one code in its window: only the first is kept",
    ttl: expires(CODE_WINDOW),
    secret: true,
  }),
  signedOutLimit: string("touch_links:click_ratelimit:unauthenticated", integer, {
    doc: "uses of any code by people who are not signed in, in the current window",
    ttl: expires(SIGNED_OUT_WINDOW),
  }),
  warningLimit: string("touch_links:click_ratelimit:warning", integer, {
    doc: "times that people had reason to be told of too many guesses; the first in an hour tells them",
    ttl: expires(WARNING_WINDOW),
  }),
  leavingLimit: string("touch_links:leaving_ratelimit:{code}", integer, {
    doc: "addresses that were tried for leaving with one code, in this hour",
    ttl: expires(LEAVING_WINDOW),
    origin: "carillon",
    secret: true,
  }),
  robots: hash("touch_links:robots:{code}", mapOf(integer, { shape: "rule → number of uses" }), {
    doc: "uses of a link by robots, by the rule that knew them",
    ttl: expires(ROBOTS_KEPT),
    origin: "carillon",
    secret: true,
  }),
  persistReport: hash(
    "stats:touch_links:persist_link_job",
    reportFields([
      "attempted",
      "lost",
      "integrity_error",
      "persisted",
      "persisted_without_clicks",
      "persisted_with_one_click",
      "persisted_with_multiple_clicks",
    ]),
    {
      doc: "what the last run of storing links did",
      report: { runner: "runners.touch.persist_link", unit: "milliseconds" },
    },
  ),
  leakReport: hash("stats:touch_links:leaked_link_detection_job", reportFields(["leaked", "recovered", "abandoned"]), {
    doc: "what the last search for links that nobody claimed did",
    report: { runner: "runners.touch.leaked_link_detection", unit: "milliseconds" },
  }),
  delayedReport: hash(
    "stats:touch_links:delayed_clicks_persist_job",
    reportFields(["attempted", "persisted", "delayed", "lost", "duplicate"]),
    {
      doc: "what the last run of storing clicks that had to wait did",
      report: { runner: "runners.touch.delayed_click_persist", unit: "milliseconds" },
    },
  ),
});
