import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { VirtualClock } from "../kernel/clock.ts";
import { Config } from "../kernel/config.ts";
import { DiskStore } from "./disk-store.ts";
import { objectStoreConformance } from "./object-store.conformance.ts";
import { objectStoreErrors, readAll } from "./object-store.ts";
import { objectStoreSettings, openObjectStore } from "./open-object-store.ts";
import { S3Store } from "./s3-store.ts";

const credentials = { accessKeyId: "S3RVER", secretAccessKey: "S3RVER" };
const folders: string[] = [];
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

// This server walks its folders while it lists, so keys do not come in the order of their bytes as they do on S3 itself.
objectStoreConformance("the S3 client", { listsInOrder: false }, async () => {
  const { default: S3rver } = (await import("s3rver" as string)) as {
    default: new (options: object) => { run(): Promise<AddressInfo>; close(): Promise<void> };
  };
  const directory = mkdtempSync(join(tmpdir(), "carillon-test-s3-"));
  folders.push(directory);
  const server = new S3rver({
    address: "127.0.0.1",
    port: 0,
    silent: true,
    directory,
    vhostBuckets: false,
    configureBuckets: [{ name: "carillon" }],
  });
  const { port } = await server.run();
  const store = new S3Store({
    endpoint: `http://127.0.0.1:${port}`,
    bucket: "carillon",
    region: "us-east-1",
    credentials,
    pathStyle: true,
    clock: new VirtualClock(),
  });
  return {
    store,
    close: async () => {
      store.close();
      await server.close();
    },
  };
});

/** A clock on which every wait is over at once and remembered. */
class HastyClock extends VirtualClock {
  readonly waits: number[] = [];

  override async sleep(seconds: number): Promise<boolean> {
    this.waits.push(seconds);
    return true;
  }
}

/** Answers each request with the next of the given answers, the last one for ever, and counts. */
async function scriptedServer(answers: ((response: ServerResponse) => void)[]) {
  const requests: { method: string; body: string }[] = [];
  const server: Server = createServer(async (request, response) => {
    const body = (await readAll(request)).toString();
    requests.push({ method: request.method ?? "", body });
    (answers[requests.length - 1] ?? answers.at(-1))?.(response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return { server, requests, endpoint: `http://127.0.0.1:${port}` };
}

const ok = (response: ServerResponse) => void response.writeHead(200, { ETag: '"x"' }).end();
const fails = (status: number, code: string) => (response: ServerResponse) =>
  void response
    .writeHead(status, { "content-type": "application/xml" })
    .end(`<?xml version="1.0"?><Error><Code>${code}</Code><Message>no</Message></Error>`);
const hangsUp = (response: ServerResponse) => void response.socket?.destroy();

describe("how the S3 client takes faults", () => {
  const closing: (() => void)[] = [];
  afterEach(() => {
    for (const close of closing.splice(0)) close();
  });

  async function storeAgainst(answers: ((response: ServerResponse) => void)[]) {
    const { server, requests, endpoint } = await scriptedServer(answers);
    const clock = new HastyClock();
    const options = { endpoint, bucket: "carillon", region: "us-east-1", pathStyle: true, clock };
    const store = new S3Store({ ...options, credentials });
    closing.push(() => {
      store.close();
      server.closeAllConnections();
      server.close();
    });
    return { store, requests, clock, options };
  }

  test("faults that may pass are tried five times, with waits of 1, 2, 4 and 8 seconds", async () => {
    const faults = [fails(503, "SlowDown"), fails(500, "InternalError"), hangsUp, fails(503, "ServiceUnavailable"), ok];
    const { store, requests, clock } = await storeAgainst(faults);
    const putting = store.put("a", Buffer.from("content"), { contentType: "text/plain" });
    await putting;
    expect(clock.waits).toEqual([1, 2, 4, 8]);
    expect(requests.map(({ body }) => body)).toEqual(Array(5).fill("content"));
  });

  test("a stream is sent again in full by each attempt", async () => {
    const { store, requests, clock } = await storeAgainst([hangsUp, fails(503, "SlowDown"), ok]);
    const source = Readable.from([Buffer.from("one "), Buffer.from("two")]);
    const putting = store.put("a", source, { contentType: "text/plain" });
    await putting;
    expect(clock.waits).toEqual([1, 2]);
    expect(requests.map(({ body }) => body)).toEqual(["one two", "one two", "one two"]);
  });

  test("after the fifth failure the store counts as unavailable", async () => {
    const { store, requests, clock } = await storeAgainst([fails(503, "SlowDown")]);
    const deleting = store.delete("a");
    const outcome = expect(deleting).rejects.toMatchObject({
      code: "file_store_unavailable",
      status: 503,
      retryAfter: 5,
    });
    await outcome;
    expect(clock.waits).toEqual([1, 2, 4, 8]);
    expect(requests).toHaveLength(5);
  });

  test.each([
    [403, "AccessDenied"],
    [400, "InvalidRequest"],
    [404, "NoSuchBucket"],
  ])("a refusal of %i %s is final at the first answer", async (status, code) => {
    const { store, requests } = await storeAgainst([fails(status, code)]);
    await expect(store.get("a")).rejects.toSatisfy(objectStoreErrors.file_store_refused.matches);
    expect(requests).toHaveLength(1);
  });

  test("NoSuchKey means done for delete and object_not_found for get, without a second try", async () => {
    const { store, requests } = await storeAgainst([fails(404, "NoSuchKey")]);
    await store.delete("a");
    await expect(store.get("a")).rejects.toSatisfy(objectStoreErrors.object_not_found.matches);
    expect(requests).toHaveLength(2);
  });

  test("credentials that cannot be had right now are waited for", async () => {
    const { options, requests } = await storeAgainst([ok]);
    const clock = new HastyClock();
    let calls = 0;
    const late = async () => {
      calls += 1;
      if (calls < 3) throw Object.assign(new Error("no credentials"), { name: "CredentialsProviderError" });
      return credentials;
    };
    const store = new S3Store({ ...options, clock, credentials: late as never });
    const putting = store.put("a", Buffer.from("x"), { contentType: "text/plain" });
    await putting;
    expect(clock.waits).toEqual([1, 2]);
    expect(requests).toHaveLength(1);
    store.close();
  });
});

test("the store that the settings name is opened: an address means S3, none means the data folder", async () => {
  const dataDirectory = mkdtempSync(join(tmpdir(), "carillon-test-data-"));
  folders.push(dataDirectory);
  const clock = new VirtualClock();
  const folder = await openObjectStore(new Config([]), { clock, dataDirectory });
  expect(folder).toBeInstanceOf(DiskStore);
  expect(folder.bucket).toBe("carillon");
  const config = new Config([]).with(
    [objectStoreSettings.endpoint, "http://127.0.0.1:1"],
    [objectStoreSettings.bucket, "elsewhere"],
  );
  const remote = await openObjectStore(config, { clock, dataDirectory });
  expect(remote).toBeInstanceOf(S3Store);
  expect(remote.bucket).toBe("elsewhere");
  expect(objectStoreSettings.bucket.env).toBe("CARILLON_S3_BUCKET");
  expect(objectStoreSettings.secretAccessKey).toMatchObject({ env: "CARILLON_S3_SECRET_ACCESS_KEY", secret: true });
});
