import { settings as kinds } from "../../kernel/config.ts";

export const settings = {
  queueLimit: kinds.integer("touch.queueLimit", {
    default: 10_000,
    min: 1,
    doc: "touches that may wait; more are refused",
  }),
  batch: kinds.integer("touch.batch", {
    default: 400,
    min: 1,
    max: 500,
    doc: "touches that are sent at once",
  }),
  segment: kinds.integer("touch.segment", {
    default: 400,
    min: 1,
    max: 500,
    doc: "touches that one call hands to the channels",
  }),
  channelQueueLimit: kinds.integer("touch.channelQueueLimit", {
    default: 10_000,
    min: 1,
    doc: "messages that may wait in a channel before touches wait instead",
  }),
  logLimit: kinds.integer("touch.logLimit", {
    default: 200_000,
    min: 1,
    doc: "rows that may wait to be written before touches wait instead",
  }),
  staleAfter: kinds.seconds("touch.staleAfter", {
    default: 28_800,
    doc: "how long a touch may wait before it means nothing any more and fails",
  }),
  pendingExpiry: kinds.seconds("touch.pendingExpiry", {
    default: 136_800,
    doc: "how long the end of a touch is waited for; longer than any channel takes, shorter than links.leakAge",
  }),
  dailyCap: kinds.integer("touch.dailyCap", {
    default: 0,
    min: 0,
    doc: "touches that one person gets on one channel in a day of the statistics; more are left out. 0 sets no limit",
  }),
  campaignPage: kinds.integer("touch.campaignPage", {
    default: 500,
    min: 1,
    max: 500,
    doc: "people that a campaign goes through at once",
  }),
  evidence: kinds.flag("touch.evidenceBeforeExpiry", {
    default: false,
    doc: "whether a touch whose end nobody told ends well if its arrival is in SQL, as after Redis went back to an older copy",
  }),
  logBatch: kinds.integer("touch.logBatch", { default: 5_000, min: 1, doc: "rows that are written at once" }),
  logRows: kinds.integer("touch.logRows", { default: 1_000, min: 1, doc: "rows that one statement writes" }),
  debugLog: kinds.oneOf("touch.debugLog", ["all", "failures", "none"], {
    default: "all",
    doc: "which steps of touches are kept for each person: all, only those that failed, or none",
  }),
};
