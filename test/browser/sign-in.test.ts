import { afterAll, beforeAll, expect, test } from "vitest";
import { listSessions, revokeSession } from "../../src/infrastructure/access/service.ts";
import { openStage, type Stage } from "./stage.ts";

let stage: Stage;
beforeAll(async () => {
  stage = await openStage();
}, 180_000);
afterAll(() => stage?.close());

test("a link signs a browser in once; scripts of the page see neither its secret nor the cookie", async () => {
  const link = await stage.signInLink();
  const { page, context, takeFaults } = await stage.visit({ signedIn: false });
  await page.goto(link);
  await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  expect(page.url()).toBe(`${stage.url}/admin/`);
  expect(
    await page.evaluate("document.cookie + location.hash + JSON.stringify({ ...localStorage, ...sessionStorage })"),
  ).not.toMatch(/crl_/);
  expect(await context.cookies(`${stage.url}/api/1/admin`)).toMatchObject([
    { name: "carillon_session", httpOnly: true, sameSite: "Strict", path: "/api/1/admin" },
  ]);
  await page.reload();
  await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  expect(takeFaults()).toEqual([]);
  await context.close();

  const second = await stage.visit({ signedIn: false });
  await second.page.goto(link);
  await second.page.getByText("The sign-in link was used already").waitFor();
  await second.page.getByText("Print a new one with `carillon admin login`.").waitFor();
  await second.context.close();
});

test("nobody who is not signed in sees more than how to sign in, wherever they go", async () => {
  const { page, context, takeFaults } = await stage.visit({ signedIn: false });
  for (const path of ["/admin", "/admin/jobs"]) {
    await page.goto(stage.url + path);
    await page.getByRole("heading", { name: "Sign in to Carillon" }).waitFor();
    expect(await page.getByRole("navigation").count()).toBe(0);
  }
  expect(takeFaults()).toEqual([]);
  await context.close();
});

test("signing out, and a session that somebody revoked, lead back to the sign-in page", async () => {
  for (const end of ["out", "revoked"]) {
    const { page, context } = await stage.visit({ signedIn: false });
    await page.goto(await stage.signInLink());
    await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
    if (end === "out") await page.getByRole("button", { name: "Sign out" }).click();
    else for (const { uid } of await listSessions(stage.house.ctx)) await revokeSession(stage.house.ctx, uid);
    await page.getByRole("heading", { name: "Sign in to Carillon" }).waitFor();
    await context.close();
  }
  expect(await listSessions(stage.house.ctx)).toEqual([]);
});

test("the pages run no script but their own files, and nobody may frame them", async () => {
  const page = await fetch(`${stage.url}/admin/anything/below`);
  expect(page.status).toBe(200);
  const html = await page.text();
  expect(html).not.toMatch(/<script(?![^>]*\bsrc=)|\son\w+=/);
  const policy = page.headers.get("content-security-policy") ?? "";
  expect(policy).toMatch(/default-src 'none'.*script-src 'self';.*frame-ancestors 'none'/);
  expect(policy).not.toMatch(/unsafe|https?:|\*/);
  const again = await fetch(`${stage.url}/admin`);
  expect(again.headers.get("content-security-policy")).not.toBe(policy);
  const sources = [...html.matchAll(/(?:src|href)="(\/admin\/assets\/[^"]+)"/g)].map(([, source]) => source!);
  expect(sources.length).toBeGreaterThan(2);
  for (const source of sources) {
    const asset = await fetch(stage.url + source, { headers: { "accept-encoding": "br" } });
    expect([source, asset.status, asset.headers.get("cache-control")]).toEqual([
      source,
      200,
      "public, max-age=31536000, immutable",
    ]);
    expect(asset.headers.get("content-encoding")).toBe("br");
  }
  expect((await fetch(`${stage.url}/admin/assets/none.js`)).status).toBe(404);
});
