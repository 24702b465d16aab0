import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { gunzipSync } from "node:zlib";

export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  /** Unpacked where it came packed. */
  readonly body: Buffer;
  /** Tells connections apart. */
  readonly port: number;
}

export type Answering = (request: SeenRequest, response: ServerResponse) => void;

/** A server on loopback that keeps what it was asked. The next of `once` answers, else `always`. */
export async function startServer(always: Answering) {
  const requests: SeenRequest[] = [];
  const once: Answering[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const raw = Buffer.concat(chunks);
    const seen: SeenRequest = {
      method: request.method ?? "",
      path: request.url ?? "",
      headers: request.headers,
      body: request.headers["content-encoding"] === "gzip" ? gunzipSync(raw) : raw,
      port: request.socket.remotePort ?? 0,
    };
    requests.push(seen);
    (once.shift() ?? always)(seen, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    once,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

export type FixtureServer = Awaited<ReturnType<typeof startServer>>;

export const answersJson =
  (status: number, content: unknown, headers: Readonly<Record<string, string>> = {}): Answering =>
  (_, response) =>
    void response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(content));

export const answersText =
  (status: number, text: string, headers: Readonly<Record<string, string>> = {}): Answering =>
  (_, response) =>
    void response.writeHead(status, headers).end(text);

export const hangsUp: Answering = (_, response) => void response.socket?.destroy();

/** The beginning of an answer that never ends. */
export const breaksOff: Answering = (_, response) => {
  response.writeHead(200, { "content-type": "application/json", "content-length": "1000" });
  response.write('{"data":', () => response.socket?.destroy());
};

/** Never answers; the caller's patience decides. */
export const isSilent: Answering = () => {};
