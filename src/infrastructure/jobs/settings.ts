import { settings as kinds } from "../../kernel/config.ts";

export const settings = {
  redisClients: kinds.integer("alerting.redisClients", {
    default: 1000,
    min: 1,
    doc: "how many clients may be connected to Redis before operators are warned",
  }),
};
