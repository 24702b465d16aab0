import { expect, test } from "vitest";
import type { Context } from "../../jobs/context.ts";
import { AlertRecorder } from "../../kernel/alerts.ts";
import { Config, type Setting } from "../../kernel/config.ts";
import { kernelErrors } from "../../kernel/errors.ts";
import { emailSettings } from "../../providers/settings.ts";
import { email } from "./index.ts";
import { settings } from "./settings.ts";

/** Starts the room with these settings; answers what it warned of. */
async function startWith(
  ...chosen: readonly (readonly [Setting<never> | Setting<unknown>, unknown])[]
): Promise<readonly string[]> {
  const alerts = new AlertRecorder();
  const config = new Config([]).with([settings.publicUrl, "http://127.0.0.1:8787"], ...chosen);
  const stop = await email.start!({ config, alerts } as unknown as Context);
  await stop?.();
  return alerts.identifiers();
}

test("with a provider and nobody to send as, the house does not start and says which setting is missing", async () => {
  const refused = await startWith([emailSettings.provider, ["ses"]]).catch((error: unknown) => error);
  expect(kernelErrors.invalid_settings.matches(refused)).toBe(true);
  expect((refused as Error).message).toContain("CARILLON_EMAIL_FROM");
  expect(await startWith()).toEqual([]);
});

test("whoever sends real mails whose links lead to their own machine is warned", async () => {
  const real = [
    [emailSettings.provider, ["smtp"]],
    [settings.from, "Carillon <hello@example.com>"],
  ] as const;
  expect(await startWith(...real)).toEqual(["emails:public_url_is_local"]);
  expect(await startWith(...real, [settings.publicUrl, "https://bells.example.com"])).toEqual([]);
});
