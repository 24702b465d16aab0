import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { VirtualClock } from "../kernel/clock.ts";
import { CertificateShelf } from "./certificate-shelf.ts";
import type { Fetch } from "./http-exchange.ts";
import { CERTIFICATE_URL, envelope, rsaKeys, selfSigned, TOPIC } from "./sns.fixture.ts";
import { SnsVerifier } from "./sns.ts";

const keys = rsaKeys();
let clock: VirtualClock;
let folder: string;
let downloads: number;
let server: () => Response;

beforeEach(() => {
  clock = new VirtualClock();
  folder = join(mkdtempSync(join(tmpdir(), "shelf-")), "certificates");
  downloads = 0;
  const certificate = selfSigned(keys, { from: clock.now() - 86_400, to: clock.now() + 30 * 86_400 });
  server = () => new Response(certificate, { headers: { "cache-control": "max-age=3600" } });
});
afterEach(() => rmSync(join(folder, ".."), { recursive: true }));

const fetch = (async () => {
  downloads += 1;
  return server();
}) as unknown as Fetch;

/** What a process that has just started says of an envelope that was signed now. */
async function freshProcess(): Promise<boolean> {
  const verifier = new SnsVerifier({ topicArns: [TOPIC], clock, fetch, shelf: folder });
  const { headers, body } = envelope(keys.privateKey, clock.now());
  return (await verifier.verify(headers, Buffer.from(JSON.stringify(body)))).ok;
}

test("a certificate outlives its process, as long as its server allowed", async () => {
  expect([await freshProcess(), await freshProcess(), downloads]).toEqual([true, true, 1]);
  server = () => new Response("away", { status: 503 });
  await clock.advance(3599);
  expect([await freshProcess(), downloads]).toEqual([true, 1]);
  await clock.advance(2);
  expect([await freshProcess(), downloads]).toEqual([false, 2]);
});

test("a file that was damaged, or holds another address, is downloaded anew", async () => {
  await freshProcess();
  const [file] = readdirSync(folder);
  const until = clock.now() + 3600;
  for (const content of [
    "not json",
    JSON.stringify({ url: CERTIFICATE_URL, pem: "not a certificate", until }),
    JSON.stringify({ url: "https://evil.test/x.pem", pem: "x", until }),
  ]) {
    downloads = 0;
    writeFileSync(join(folder, file!), content);
    expect([await freshProcess(), downloads, await freshProcess(), downloads]).toEqual([true, 1, true, 1]);
  }
});

test("a shelf that cannot be written costs nothing but downloads", async () => {
  writeFileSync(folder, "a file where the folder should be");
  expect([await freshProcess(), await freshProcess(), downloads]).toEqual([true, true, 2]);
});

test("what is unusable is never kept", async () => {
  server = () => new Response("nonsense");
  expect(await freshProcess()).toBe(false);
  expect(await new CertificateShelf(folder).get(CERTIFICATE_URL)).toBeUndefined();
});

test("made-up addresses do not fill the disk", async () => {
  const shelf = new CertificateShelf(folder);
  for (let count = 0; count < 70; count++) await shelf.put({ url: `https://a.test/${count}`, pem: "x", until: 1 });
  expect(readdirSync(folder).length).toBeLessThanOrEqual(64);
  expect(await shelf.get("https://a.test/69")).toEqual({ url: "https://a.test/69", pem: "x", until: 1 });
});
