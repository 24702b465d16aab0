import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openTestServer, type TestServer } from "../../../test/harness/http.ts";
import { VirtualClock } from "../../kernel/clock.ts";
import { Config, type Setting } from "../../kernel/config.ts";
import { answersText, type FixtureServer, isSilent, startServer } from "../../providers/http-server.fixture.ts";
import { emailTemplates } from "./index.ts";
import { parse } from "./mail.fixture.ts";
import { readPicture } from "./picture.ts";
import {
  brandOf,
  composeMail,
  errors,
  judgeTemplates,
  mailFor,
  prepareMail,
  publicUrl,
  readyBrand,
} from "./service.ts";
import { settings } from "./settings.ts";

/** The beginning of a PNG, which is all that anybody looks at here. */
function png(width: number, height: number): Buffer {
  const bytes = Buffer.alloc(64);
  bytes.write("\x89PNG\r\n\x1a\n", "latin1");
  bytes.writeUInt32BE(width, 16);
  bytes.writeUInt32BE(height, 20);
  return bytes;
}
const GIF = Buffer.concat([Buffer.from("GIF89a"), Buffer.from([64, 0, 32, 0, 0, 0])]);
const JPEG = Buffer.from("ffd8ffe000040000ffc0001108002000400301", "hex");
const SAMPLE = { name: "Ada", message: "Hello" };

let folder: string;
let place: string;
let elsewhere: FixtureServer;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "carillon-logo-"));
  place = join(folder, "logo.png");
  writeFileSync(place, png(240, 80));
  elsewhere = await startServer((_request, response) => {
    response.writeHead(200, { "content-type": "image/gif" });
    response.end(GIF);
  });
});
afterAll(async () => {
  await elsewhere.close();
  rmSync(folder, { recursive: true, force: true });
});

const configured = (...values: readonly (readonly [Setting<never> | Setting<unknown>, unknown])[]) =>
  new Config([]).with([publicUrl, "https://app.example.com/below/"], ...values);

test("pictures are known by their own bytes, and what is none is refused", () => {
  expect(readPicture(png(240, 80))).toMatchObject({ contentType: "image/png", width: 240, height: 80 });
  expect(readPicture(png(240, 80))!.name).toMatch(/^[0-9a-f]{16}\.png$/);
  expect(readPicture(GIF)).toMatchObject({ contentType: "image/gif", width: 64, height: 32 });
  expect(readPicture(JPEG)).toMatchObject({ contentType: "image/jpeg", width: 64, height: 32 });
  for (const none of [Buffer.from("<svg/>"), Buffer.alloc(0), png(0, 4), JPEG.subarray(0, 8), Buffer.alloc(2_000_000)])
    expect(readPicture(none)).toBeUndefined();
});

test("a logo stands on top of every mail at half its size, linked to this installation", () => {
  const brand = brandOf(configured([settings.brandLogo, place], [settings.brandName, "Bells & Co"]));
  const { html } = prepareMail("sample", SAMPLE, brand);
  expect(html).toMatch(
    /<img src="https:\/\/app\.example\.com\/below\/api\/1\/emails\/assets\/[0-9a-f]{16}\.png" width="120" height="40" alt="Bells &amp; Co"/,
  );
  expect(judgeTemplates(brand).flatMap(({ faults }) => faults)).toEqual([]);
  expect(prepareMail("sample", SAMPLE, brandOf(configured())).html).not.toContain("<img");
});

test("a logo inside the mail is found by its cid, beside the files of the template", async () => {
  const brand = brandOf(configured([settings.brandLogo, place], [settings.brandLogoInline, true]));
  const { template, html, text, subject, attachments } = prepareMail("sample", SAMPLE, brand);
  const envelope = { uid: "crl_em_1", from: { address: "a@example.com" }, to: "b@example.com", subject, date: 1 };
  const mail = mailFor(template, { html, text }, { ...envelope, attachments: attachments(1) });
  const read = await parse(await composeMail(mail));
  expect(read.html).toContain('src="cid:logo@carillon"');
  expect(read.attachments).toMatchObject([
    { contentId: "<logo@carillon>", mimeType: "image/png", filename: "logo.png" },
  ]);
});

test("a logo that cannot be read or is no picture stops the start with what to do", () => {
  writeFileSync(join(folder, "logo.svg"), "<svg/>");
  for (const path of [join(folder, "none.png"), join(folder, "logo.svg")])
    expect(() => brandOf(configured([settings.brandLogo, path]))).toThrow(/CARILLON_EMAIL_BRAND_LOGO/);
});

test("a logo from elsewhere is fetched once for all mails, and an old one is better than none", async () => {
  const clock = new VirtualClock();
  const ctx = { config: configured([settings.brandLogo, `${elsewhere.url}/logo`]), clock };
  const before = elsewhere.requests.length;
  const [one, other] = await Promise.all([readyBrand(ctx), readyBrand(ctx)]);
  expect([one, elsewhere.requests.length - before]).toEqual([other, 1]);
  expect((await readyBrand(ctx)).logo).toMatchObject({ width: 32, height: 16 });
  await clock.advance(4000);
  elsewhere.once.push(answersText(500, "no"));
  expect((await readyBrand(ctx)).logo).toMatchObject({ width: 32, height: 16 });
  expect(elsewhere.requests.length - before).toBe(2);
});

test("a logo that does not come, comes too slowly, or is something else is told apart", async () => {
  const clock = new VirtualClock();
  const ask = async (url: string) => {
    const asked = Promise.resolve(readyBrand({ config: configured([settings.brandLogo, url]), clock }));
    return asked.catch((error: unknown) => error);
  };
  elsewhere.once.push(answersText(404, "no"));
  expect(errors.template_asset_unreachable.matches(await ask(`${elsewhere.url}/a`))).toBe(true);
  elsewhere.once.push(answersText(200, "<html>"));
  expect(errors.template_asset_unreachable.matches(await ask(`${elsewhere.url}/b`))).toBe(true);
  expect(errors.template_asset_unreachable.matches(await ask("http://example.com/not-https.png"))).toBe(true);
  elsewhere.once.push(isSilent);
  const slow = ask(`${elsewhere.url}/c`);
  await clock.advance(5.1);
  expect(errors.template_too_slow.matches(await slow)).toBe(true);
});

test("the picture is served by its name for ever, and nothing else is", async () => {
  const server: TestServer = await openTestServer({
    domains: [emailTemplates],
    settings: [[settings.brandLogo, place]],
  });
  const name = readPicture(png(240, 80))!.name;
  const shown = await server.call("GET", `/api/1/emails/assets/${name}`);
  expect([shown.statusCode, shown.headers["content-type"], shown.headers["cache-control"]]).toEqual([
    200,
    "image/png",
    "public, max-age=31536000, immutable",
  ]);
  expect(shown.rawPayload).toEqual(png(240, 80));
  expect((await server.call("GET", `/api/1/emails/assets/${"0".repeat(16)}.png`)).json()).toMatchObject({
    type: "picture_not_found",
  });
  expect((await server.call("GET", "/api/1/emails/assets/..%2f..%2fsecrets.png")).statusCode).toBe(422);
  await server.close();
});
