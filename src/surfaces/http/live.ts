import websocket from "@fastify/websocket";
import type { FastifyInstance } from "fastify";
import type { WebSocket } from "ws";
import { errors } from "./errors.ts";

/** Takes over sockets: from `accept` on, the gateway speaks with the client and closes the socket. */
export interface LiveGateway {
  accept(socket: WebSocket): void;
}

export const LIVE_PATH = "/api/1/live";
const LONGEST_MESSAGE = 65_536;

/** Clients only subscribe and answer pings here, so their messages are short. */
export async function serveLive(app: FastifyInstance, gateway: LiveGateway): Promise<void> {
  await app.register(websocket, { options: { maxPayload: LONGEST_MESSAGE } });
  app.route({
    method: "GET",
    url: LIVE_PATH,
    schema: {
      tags: ["server"],
      summary: "Follow live channels over a WebSocket",
      description: 'Send `{"type":"subscribe","channel","jwt"}`; each subscription proves itself with its own token.',
      operationId: "live",
      security: [],
    },
    handler: async (_request, reply) => {
      reply.header("upgrade", "websocket");
      throw errors.upgrade_required();
    },
    wsHandler: (socket) => gateway.accept(socket),
  });
}
