import { decimal, expires, family, string } from "../../kernel/keyspace/index.ts";
import { SPACED_APIS } from "./apis.ts";

const names = new RegExp(Object.keys(SPACED_APIS).join("|"));

export const keys = family("external_apis", {
  limiter: string("external_apis:api_limiter:{api}", decimal, {
    doc: "when this API was last called or will be by whoever reserved that moment; the next call keeps its distance",
    ttl: expires(undefined, "until the next slot is free"),
    params: { api: names },
  }),
});
