import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";
import { brotliDecompressSync, gunzipSync, gzipSync, inflateSync } from "node:zlib";
import type { Log } from "../kernel/log.ts";

/** A request as a simulator sees it: read to its end and unpacked. */
export interface Asked {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/**
 * What a simulator does with a request: answers it, cuts the connection, says nothing until the caller gives up, or leaves
 * the request to the next simulator.
 */
export type Answer =
  | {
      readonly status: number;
      readonly json?: unknown;
      readonly text?: string;
      readonly headers?: Readonly<Record<string, string>>;
    }
  | "cut"
  | "silence"
  | undefined;

export type Answering = (asked: Asked) => Promise<Answer> | Answer;

const LARGEST_BODY = 64 * 1024 * 1024;

/** The HTTP server that all simulators share; their paths do not meet. */
export class ExchangeServer {
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async listen(options: {
    host: string;
    port: number;
    log: Log;
    answering: readonly Answering[];
  }): Promise<ExchangeServer> {
    const server = createServer((request, response) => {
      serve(request, response, options.answering).catch((error: unknown) => {
        options.log.warn({ error: String(error) }, "the sandbox could not answer a request");
        if (response.headersSent) response.destroy();
        else response.writeHead(500).end();
      });
    });
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(options.port, options.host, () => {
        server.off("error", reject);
        resolve();
      });
    });
    return new ExchangeServer(server);
  }

  get url(): string {
    const { address, port, family } = this.#server.address() as AddressInfo;
    return `http://${family === "IPv6" ? `[${address}]` : address}:${port}`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

async function serve(request: IncomingMessage, response: ServerResponse, answering: readonly Answering[]) {
  const url = new URL(request.url ?? "/", "http://sandbox");
  const body = await readBody(request);
  if (body === undefined) return void response.writeHead(413, { connection: "close" }).end();
  const asked: Asked = {
    method: request.method ?? "GET",
    path: url.pathname,
    query: url.searchParams,
    headers: request.headers,
    body,
  };
  for (const each of answering) {
    const answer = await each(asked);
    if (answer === undefined) continue;
    if (answer === "cut") return void request.socket.destroy();
    if (answer !== "silence") send(request, response, answer);
    return;
  }
  response.writeHead(404).end();
}

function send(request: IncomingMessage, response: ServerResponse, answer: Exclude<Answer, string | undefined>): void {
  if (request.socket.destroyed) return;
  const json = answer.json !== undefined;
  const plain = Buffer.from(json ? JSON.stringify(answer.json) : (answer.text ?? ""));
  const packs = /\bgzip\b/.test(String(request.headers["accept-encoding"] ?? "")) && plain.length > 0;
  const bytes = packs ? gzipSync(plain) : plain;
  response.writeHead(answer.status, {
    ...(json ? { "content-type": "application/json; charset=utf-8" } : {}),
    ...(packs ? { "content-encoding": "gzip" } : {}),
    "content-length": String(bytes.length),
    ...answer.headers,
  });
  response.end(bytes);
}

async function readBody(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > LARGEST_BODY) return undefined;
    chunks.push(chunk);
  }
  const bytes = Buffer.concat(chunks);
  const limit = { maxOutputLength: LARGEST_BODY };
  switch (request.headers["content-encoding"]) {
    case "gzip":
      return gunzipSync(bytes, limit);
    case "deflate":
      return inflateSync(bytes, limit);
    case "br":
      return brotliDecompressSync(bytes, limit);
    default:
      return bytes;
  }
}
