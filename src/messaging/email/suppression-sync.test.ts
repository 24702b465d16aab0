import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { eventually } from "../../../test/harness/facts.ts";
import type { JobContext } from "../../jobs/context.ts";
import { jobKeys } from "../../jobs/keys.ts";
import { jobMigrations } from "../../jobs/tables.ts";
import { migrate } from "../../kernel/sql/index.ts";
import { contacts } from "../contacts/index.ts";
import { suppressEmails } from "../contacts/service.ts";
import { type EmailHouse, openEmail } from "./email.fixture.ts";

let house: EmailHouse;
beforeAll(async () => {
  house = await openEmail();
  await migrate(house.ctx.sql, [{ domain: "jobs", migrations: jobMigrations }]);
});
afterAll(() => house.close());
beforeEach(async () => {
  await house.clear();
  for (const email of await theirs()) await list().remove(email);
});

const list = () => house.ctx.providers.email.suppressions!;
async function theirs(): Promise<readonly string[]> {
  const found: string[] = [];
  for await (const page of list().since(0)) found.push(...page.map(({ email, reason }) => `${email} ${reason}`));
  return found.map((line) => line.split(" ")[0]!).sort();
}
const ours = () => house.query("select email_address, reason, scope from suppressed_emails order by email_address");
const run = async (name: string, kwargs: object, ctx = house.ctx) => {
  const runner = contacts.runners.find((one) => one.name === name)!;
  const around = Object.create(ctx, {
    shuttingDown: { value: () => false },
    budget: { value: { exhausted: () => false } },
  }) as JobContext;
  await runner.run!(around, kwargs as never);
};

test("bounces and complaints are exchanged with the provider's list, and people's own wishes stay here", async () => {
  await list().add({ email: "gone@example.com", reason: "Bounce" });
  await list().add({ email: "angry@example.com", reason: "Complaint" });
  await suppressEmails(house.ctx, [
    { email: "ours@example.com", reason: "Bounce" },
    { email: "tired@example.com", reason: "User" },
    { email: "barred@example.com", reason: "Admin" },
  ]);
  for (let times = 0; times < 2; times++) await run("runners.contacts.sync_suppressions", {});
  expect(await theirs()).toEqual(["angry@example.com", "gone@example.com", "ours@example.com"]);
  expect(await ours()).toEqual([
    { email_address: "angry@example.com", reason: "Complaint", scope: "all" },
    { email_address: "barred@example.com", reason: "Admin", scope: "all" },
    { email_address: "gone@example.com", reason: "Bounce", scope: "all" },
    { email_address: "ours@example.com", reason: "Bounce", scope: "all" },
    { email_address: "tired@example.com", reason: "User", scope: "all" },
  ]);
});

test("lifting a suppression also takes the address off the provider's list, by a job that is queued with it", async () => {
  await list().add({ email: "gone@example.com", reason: "Bounce" });
  await run("runners.contacts.sync_suppressions", {});
  const call = (method: string, path: string) =>
    fetch(`${house.url}/api/1/admin/email/suppressions${path}`, {
      method,
      headers: { authorization: `Bearer ${house.admin}` },
    });
  const [held] = ((await (await call("GET", "")).json()) as { items: { uid: string }[] }).items;
  expect((await call("DELETE", `/${held!.uid}`)).status).toBe(204);
  const queued = async () => {
    const raws = await house.ctx.redis.commands.lrange(house.ctx.redis.topology.key(jobKeys.hot()), 0, -1);
    return raws.map((raw) => JSON.parse(raw) as { name: string; kwargs: object });
  };
  await eventually(async () => {
    await house.base.clock.advance(0.1);
    return (await queued()).length > 0;
  }, "the job");
  const [job] = await queued();
  expect(job).toMatchObject({ name: "runners.contacts.lift_at_provider", kwargs: { emails: ["gone@example.com"] } });
  await run(job!.name, job!.kwargs);
  await run(job!.name, job!.kwargs);
  expect(await theirs()).toEqual([]);
});
