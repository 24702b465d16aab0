import { createHmac } from "node:crypto";
import { openRooms, type RoomsHouse } from "../../../test/harness/rooms.ts";
import type { Domain } from "../../domain.ts";
import { jobKeys } from "../../jobs/keys.ts";
import { promote } from "../../jobs/scripts.ts";
import { answersText, type FixtureServer, type SeenRequest, startServer } from "../../providers/http-server.fixture.ts";
import type { Endpoint } from "./endpoints.ts";
import { EVENT_TYPES } from "./event.ts";
import { webhooks } from "./index.ts";
import type { Message } from "./messages.ts";

export type MadeEndpoint = Endpoint & { readonly secret: string };

export interface WebhooksHouse extends RoomsHouse {
  /** Whoever gets the requests. It answers 204 unless told otherwise. */
  readonly receiver: FixtureServer;
  endpoint(fields?: object): Promise<MadeEndpoint>;
  /** Time passes, sleeping jobs that are due wake up, and all that wait are run. */
  pass(seconds: number): Promise<readonly string[]>;
  messages(uid: string, query?: string): Promise<readonly Message[]>;
  /** When the sleeping jobs are due, counted from now. */
  asleep(): Promise<readonly number[]>;
}

export async function openWebhooks(others: readonly Domain[] = []): Promise<WebhooksHouse> {
  const house = await openRooms({ rooms: [webhooks, ...others] });
  const receiver = await startServer(answersText(204, ""));
  const { redis, clock } = house.base;
  return {
    ...house,
    receiver,
    async endpoint(fields = {}) {
      const made = await house.call("POST", "/api/1/admin/webhooks", {
        body: { url: `${receiver.url}/hook`, types: EVENT_TYPES, ...fields },
      });
      if (made.statusCode !== 201) throw new Error(made.body);
      return made.json();
    },
    async pass(seconds) {
      await clock.advance(seconds);
      await redis.run(promote, [jobKeys.delayed(), jobKeys.hot()], [clock.now(), 1_000]);
      return house.work();
    },
    async messages(uid, query = "") {
      return (await house.call("GET", `/api/1/admin/webhooks/${uid}/messages${query}`)).json().items;
    },
    async asleep() {
      const flat = await redis.commands.zrange(redis.topology.key(jobKeys.delayed()), 0, "-1", "WITHSCORES");
      return flat.filter((_, at) => at % 2 === 1).map((due) => Math.round(Number(due) - clock.now()));
    },
    async clear(...tables) {
      await house.clear("webhook_endpoints", ...tables);
      receiver.requests.length = 0;
      receiver.once.length = 0;
      // What this process knows of endpoints is old after some seconds.
      await clock.advance(10);
    },
    async close() {
      await receiver.close();
      await house.close();
    },
  };
}

/** Checks a request as receivers do, written after the standard and not after our code; answers what it says. */
export function verified(request: SeenRequest, secret: string, now: number) {
  const { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signatures } = request.headers;
  if (Math.abs(Number(timestamp) - now) > 300) throw new Error(`the timestamp ${timestamp} is too far from ${now}`);
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  const wanted = createHmac("sha256", key).update(`${id}.${timestamp}.`).update(request.body).digest("base64");
  if (!String(signatures).split(" ").includes(`v1,${wanted}`)) throw new Error("no signature fits the secret");
  return JSON.parse(request.body.toString("utf8")) as { type: string; timestamp: string; data: object };
}
