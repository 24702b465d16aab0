import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { VirtualClock } from "../kernel/clock.ts";
import { silentLog } from "../kernel/log.ts";
import { Sandbox, type SandboxOptions } from "./sandbox.ts";

export interface Caught {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** A house that only listens: it keeps what is posted to it and answers as it is told. */
export interface Catcher {
  readonly url: string;
  readonly caught: Caught[];
  /** The next answers; 200 when there are none left. */
  readonly statuses: number[];
  /** How one request is answered, for whoever must not depend on the order in which several senders come. */
  statusOf: (caught: Caught) => number;
  /** What it does with a caught request before it answers. */
  onCaught: (caught: Caught) => Promise<void> | void;
  close(): Promise<void>;
}

export async function openCatcher(): Promise<Catcher> {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    const caught = { path: request.url ?? "", headers: request.headers, body: Buffer.concat(chunks).toString() };
    catcher.caught.push(caught);
    const status = catcher.statusOf(caught);
    await catcher.onCaught(caught);
    response.writeHead(status).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const catcher: Catcher = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    caught: [],
    statuses: [],
    statusOf: () => catcher.statuses.shift() ?? 200,
    onCaught: () => {},
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return catcher;
}

export interface Stage {
  readonly clock: VirtualClock;
  readonly house: Catcher;
  readonly sandbox: Sandbox;
  close(): Promise<void>;
}

/** A sandbox with a virtual clock, and a house that catches its webhooks. */
export async function openStage(options: Partial<SandboxOptions> = {}): Promise<Stage> {
  const clock = new VirtualClock();
  const house = await openCatcher();
  const sandbox = await Sandbox.start({ clock, log: silentLog, publicUrl: house.url, ...options });
  return {
    clock,
    house,
    sandbox,
    close: async () => {
      await sandbox.close();
      await house.close();
    },
  };
}

/** The house's part of the handshake: it fetches the address that it was sent. */
export function confirmSubscriptions(house: Catcher): void {
  house.onCaught = async ({ headers, body }) => {
    if (headers["x-amz-sns-message-type"] !== "SubscriptionConfirmation") return;
    await fetch((JSON.parse(body) as { SubscribeURL: string }).SubscribeURL);
  };
}
