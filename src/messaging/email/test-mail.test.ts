import { afterAll, beforeAll, expect, test } from "vitest";
import { createUser } from "../../people/users/service.ts";
import { addEmails } from "../contacts/service.ts";
import { adminRoutes } from "./admin-routes.ts";
import { type EmailHouse, openEmail } from "./email.fixture.ts";
import { errors } from "./errors.ts";

let house: EmailHouse;
beforeAll(async () => {
  house = await openEmail();
});
afterAll(() => house.close());

test("an administrator sends ten test mails to their own address, and is then asked to wait", async () => {
  await createUser(house.ctx, [], { sub: "ada" });
  await addEmails(house.ctx, [{ userSub: "ada", email: "ada@example.com", verified: true, cause: "identity" }]);
  const route = adminRoutes.find(({ path }) => path.endsWith("/send_test"))!;
  const body = { template: "sample", template_parameters: { name: "Ada", message: "Hello" } };
  const ask = async () => route.handle(house.ctx, { body, caller: { sub: "ada" } } as never);
  for (let sent = 0; sent < 10; sent++)
    expect(await ask()).toMatchObject({ status: 202, body: { emails: ["ada@example.com"] } });
  const refused = await ask().catch((error: unknown) => error);
  expect(errors.too_many_test_mails.matches(refused)).toBe(true);
});
