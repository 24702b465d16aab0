import { afterAll, beforeAll, expect, test } from "vitest";
import { openTestServer, type TestServer } from "../../../test/harness/http.ts";
import { emailTemplates } from "./index.ts";

const PATH = "/api/1/admin/email/templates";
let server: TestServer;
beforeAll(async () => {
  server = await openTestServer({ domains: [emailTemplates] });
});
afterAll(() => server.close());

const get = (path: string) => server.call("GET", `${PATH}${path}`, { token: server.admin });
const post = (path: string, body: unknown) => server.call("POST", `${PATH}${path}`, { token: server.admin, body });

test("templates are listed with a schema that says what belongs where, for administrators only", async () => {
  expect((await server.call("GET", PATH)).statusCode).toBe(401);
  const { templates } = (await get("")).json();
  expect(templates).toHaveLength(10);
  const reminder = templates.find(({ slug }: { slug: string }) => slug === "dailyReminder");
  expect(reminder).toMatchObject({
    title: "Daily reminder",
    list: "reminders",
    subject: "Your daily reminder",
    lifetime: null,
    attachments: [],
    parameters: {
      type: "object",
      additionalProperties: false,
      required: ["name", "message", "url", "unsubscribeUrl"],
      properties: { message: { type: "string", maxLength: 500 }, url: { format: "uri" } },
    },
  });
  expect((await get("/dailyReminder")).json()).toEqual(reminder);
  expect((await get("/eventRegistration")).json().attachments).toEqual(["event.ics"]);
  expect((await get("/nothing")).json()).toMatchObject({ type: "unknown_template" });
});

test("an example is previewed with its headers, size and warnings", async () => {
  const preview = (await get("/dailyReminder/preview")).json();
  expect(preview).toMatchObject({
    subject: "Your daily reminder",
    warnings: [expect.stringContaining("postal address")],
  });
  expect(preview.html).toContain("Take one minute to breathe");
  expect(preview.text).toContain("Take one minute to breathe");
  expect(preview.bytes).toBeGreaterThan(preview.html.length);
  const headers = Object.fromEntries(
    preview.headers.map(({ name, value }: { name: string; value: string }) => [name, value]),
  );
  expect(headers).toMatchObject({
    "List-Unsubscribe": "<https://app.example.com/l/unsubscribe-k3Jd9sQ0>",
    "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
    "List-Id": "<reminders.mail.invalid>",
  });
  expect((await get("/dailyReminder/preview?example=1")).json().text).toContain("Ludovica");
  expect((await get("/dailyReminder/preview?example=9")).json()).toMatchObject({ type: "unknown_example" });
  expect((await get("/dailyReminder/preview?example=-1")).statusCode).toBe(422);
  expect((await get("/eventRegistration/preview")).json().warnings).toEqual([]);
});

test("a preview of given parameters names the path of each fault, and takes another subject", async () => {
  const template_parameters = { name: "Ada", message: "Hi <b>", unsubscribeUrl: "https://a.example/u" };
  const refused = await post("/dailyReminder/preview", { template_parameters });
  expect(refused.statusCode).toBe(422);
  expect(refused.json()).toMatchObject({
    type: "invalid_parameters",
    message: expect.stringMatching(/^dailyReminder: url/),
    detail: [{ path: "url" }],
  });
  const good = { template_parameters: { ...template_parameters, url: "http://localhost:3000/x" }, subject: "Grüße" };
  const preview = (await post("/dailyReminder/preview", good)).json();
  expect(preview.subject).toBe("Grüße");
  expect(preview.html).toContain("Hi &lt;b&gt;");
  expect(
    (await post("/dailyReminder/preview", { ...good, subject: "a\r\nBcc: eve@evil.example" })).json(),
  ).toMatchObject({ type: "bad_mail" });
  expect((await post("/nothing/preview", good)).statusCode).toBe(404);
  expect((await post("/dailyReminder/preview", { template_parameters: [] })).statusCode).toBe(422);
});

test("a preview takes its parameters from the address too, so that a page can frame what somebody edits", async () => {
  const of = (parameters: unknown, as = "json") =>
    get(`/sample/preview?as=${as}&parameters=${encodeURIComponent(JSON.stringify(parameters))}`);
  const script = { name: "<script>alert(1)</script>", message: "Grüße" };
  expect((await of(script)).json()).toMatchObject({
    html: expect.stringContaining("Hello &lt;script&gt;"),
    text: expect.stringContaining("Hello <script>alert(1)</script>"),
  });
  const page = await of(script, "html");
  expect(page.body).toContain("Hello &lt;script&gt;");
  expect(page.headers["content-security-policy"]).toContain("frame-ancestors 'self'");
  expect(page.headers["x-frame-options"]).toBe("SAMEORIGIN");
  expect((await of({ name: "Ada" })).json()).toMatchObject({
    type: "invalid_parameters",
    detail: [{ path: "message" }],
  });
  for (const broken of ["{", "[]", "7"])
    expect((await get(`/sample/preview?parameters=${broken}`)).statusCode).toBe(422);
});

test("as a page the preview can show itself and do nothing", async () => {
  const page = await get("/welcome/preview?as=html");
  expect(page.headers["content-type"]).toBe("text/html; charset=utf-8");
  expect(page.headers["content-security-policy"]).toMatch(
    /^sandbox; default-src 'none'; img-src https: data:; style-src 'unsafe-inline'/,
  );
  expect(page.headers["x-content-type-options"]).toBe("nosniff");
  expect(page.body).toMatch(/^<!doctype html>/);
  const text = await get("/welcome/preview?as=text");
  expect(text.headers["content-type"]).toBe("text/plain; charset=utf-8");
  expect(text.body).toMatch(/^Welcome, Ada\n/);
});

test("the room opens only when every template renders", async () => {
  const close = await emailTemplates.start(server.ctx);
  await close();
});
