import { expires, family, integer, string } from "../../kernel/keyspace/index.ts";

export const ADMIN_WRITE_WINDOW = 60;

export const keys = family("access", {
  adminWrites: string("access:admin_writes:{admin}", integer, {
    doc: "How many changes one administrator has made in the running minute.",
    ttl: expires(ADMIN_WRITE_WINDOW),
    origin: "carillon",
    params: { admin: /[A-Za-z0-9._|@+-]{1,128}/ },
  }),
});
