import { settings as kinds } from "../../kernel/config.ts";

export const settings = {
  webRoot: kinds.text("links.webRoot", {
    default: "http://127.0.0.1:8787",
    doc: "where links lead to, without a slash at the end: https://example.com makes https://example.com/l/{code}",
  }),
  persistDelay: kinds.seconds("links.persistDelay", {
    default: 1_800,
    doc: "how long after its message arrived a link is stored in SQL",
  }),
  persistBatch: kinds.integer("links.persistBatch", {
    default: 400,
    min: 1,
    max: 500,
    doc: "how many links are stored at once",
  }),
  sqlBatch: kinds.integer("links.sqlBatch", {
    default: 500,
    min: 1,
    doc: "rows of links and clicks that one transaction stores",
  }),
  leakAge: kinds.seconds("links.leakAge", {
    default: 144_000,
    doc: "the age at which a link that nobody claimed is cleared away, unless its touch has not ended yet",
  }),
  delayedFirst: kinds.seconds("links.delayedFirst", {
    default: 1_800,
    doc: "how long a click waits that came while its link was being stored",
  }),
  delayedAgain: kinds.seconds("links.delayedAgain", {
    default: 600,
    doc: "how long it waits again if the link is still not stored",
  }),
  signedOutLimit: kinds.integer("links.signedOutLimit", {
    default: 500,
    min: 1,
    doc: "uses in 5 seconds by people who are not signed in, from which codes that nobody knows are dropped",
  }),
  siteTitle: kinds.text("links.site.title", { default: "Carillon", doc: "title of the preview of a link" }),
  siteDescription: kinds.text("links.site.description", {
    default: "You have a message.",
    doc: "description of the preview of a link",
  }),
  siteImage: kinds.optionalText("links.site.image", { doc: "address of the image in the preview of a link" }),
};
