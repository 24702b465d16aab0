import { resolve } from "node:path";
import type { ProcessRoles } from "../../domain.ts";
import type { Context } from "../../jobs/context.ts";
import type { Config } from "../../kernel/config.ts";
import { emailSettings, expoAccounts, twilioAccounts } from "../../providers/settings.ts";
import type { SandboxAddress } from "../../sandbox/clients.ts";
import { isLoopback } from "../../sandbox/loopback.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import { deriveKey } from "../access/service.ts";
import { announce, announced } from "./announcement.ts";
import { errors } from "./errors.ts";
import { running } from "./running.ts";
import { settings } from "./settings.ts";

export { errors } from "./errors.ts";
export { stageOf } from "./local-callers.ts";
export { losesCallbacks, sandboxOf } from "./running.ts";

type Surroundings = Pick<Context, "config" | "clock" | "log">;

/**
 * The simulated providers live as long as the web process: they are asked by whoever sends, here or in another process
 * of this machine, and they answer the routes of this one.
 */
export async function startSandbox(ctx: Context, roles: ProcessRoles): Promise<() => Promise<void>> {
  if (!standsIn(ctx.config) || !roles.web) return async () => {};
  const sandbox = await open(ctx);
  running.set(ctx.config, sandbox);
  const withdraw = announce(folderOf(ctx.config), sandbox.url);
  return async () => {
    running.delete(ctx.config);
    withdraw();
    await sandbox.close();
  };
}

/**
 * Tells the simulated providers where the house answers, which is certain only now: in development its port may have moved.
 * The house's webhook is asked at once to confirm its subscription to the topic, unless mails go to a real provider.
 */
export function houseAnswersAt(ctx: Context, url: string): void {
  const sandbox = running.get(ctx.config);
  if (!sandbox) return;
  if (ctx.config.get(settings.publicUrl) === undefined) sandbox.moveHouse(url);
  if (ctx.config.get(emailSettings.provider).length === 0) void sandbox.ses.topic.subscribe();
}

/** Whether simulated providers take the place of those that the settings do not name. */
export function standsIn(config: Config): boolean {
  const wanted = config.get(settings.enabled);
  if (wanted === "true") refuseSandbox(config, ["sandbox"]);
  return wanted === "true" || (wanted === "auto" && exposureOf(config) === undefined);
}

/**
 * Ends the start when simulated providers would be used in earnest: in production, or while strangers can reach the
 * server. Rooms call it with the names of those of their providers that are simulated.
 */
export function refuseSandbox(config: Config, simulated: readonly string[]): void {
  const exposure = exposureOf(config);
  if (simulated.length === 0 || exposure === undefined || config.get(settings.allowed)) return;
  throw errors.sandbox_not_allowed({ message: `Simulated: ${simulated.join(", ")}; but ${exposure}.` });
}

/** Why others could meet the sandbox, if they could. */
function exposureOf(config: Config): string | undefined {
  if (settingNamed(config, "env", "development") === "production") return "CARILLON_ENV is production";
  const host = settingNamed(config, "http.host", "127.0.0.1");
  return isLoopback(host) ? undefined : `the server listens on ${host}`;
}

/**
 * Where the simulated providers answer, for whoever opens clients to them: those of this process, else those that another
 * process of this installation announced, else where the settings promise them.
 */
export function sandboxAddress(config: Config): SandboxAddress {
  return {
    url: running.get(config)?.url ?? announced(folderOf(config)) ?? `http://127.0.0.1:${config.get(settings.port)}`,
    expoAccessToken: config.get(expoAccounts.expo.accessToken),
    twilio: twilioAccount(config),
  };
}

const accounts = new WeakMap<Config, SandboxAddress["twilio"]>();

/** The configured account, else one that follows from the root secret, which all processes share. */
function twilioAccount(config: Config): SandboxAddress["twilio"] {
  const known = accounts.get(config);
  if (known) return known;
  const key = Buffer.from(deriveKey({ config }, "sandbox-twilio")).toString("hex");
  const account = {
    accountSid: config.get(twilioAccounts.twilio.accountSid) ?? `AC${key.slice(0, 32)}`,
    authToken: config.get(twilioAccounts.twilio.authToken) ?? key.slice(32),
  };
  accounts.set(config, account);
  return account;
}

/** Where this installation keeps what belongs to the sandbox; nowhere without a data folder. */
function folderOf(config: Config): string | undefined {
  const data = settingNamed(config, "data.dir", "");
  return data === "" ? undefined : resolve(data, "sandbox");
}

async function open({ config, clock, log }: Surroundings): Promise<Sandbox> {
  // Loaded only here: most processes need none of it.
  const { Sandbox } = await import("../../sandbox/sandbox.ts");
  const port = Number(settingNamed(config, "http.port", "8787"));
  const { twilio, expoAccessToken } = sandboxAddress(config);
  const plan = {
    clock,
    log,
    publicUrl: config.get(settings.publicUrl) ?? `http://127.0.0.1:${port}`,
    // Also for a house that had not confirmed when it was asked at its start.
    subscribing: "at first mail" as const,
    reportsTexts: true,
    seed: config.get(settings.seed),
    keep: config.get(settings.keep),
    folder: folderOf(config),
    secrets: { twilio, expoAccessToken },
  };
  try {
    return await Sandbox.start({ ...plan, port: config.get(settings.port), smtpPort: config.get(settings.smtpPort) });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
    // A second installation on a developer's machine is no reason not to start.
    const sandbox = await Sandbox.start(plan);
    log.warn({ url: sandbox.url, smtp_url: sandbox.smtpUrl }, "the ports of the sandbox are taken, it uses others");
    return sandbox;
  }
}

/** A setting of a floor or room that this one cannot see, by its name. */
function settingNamed(config: Config, name: string, otherwise: string): string {
  const found = config.effective.find(({ setting }) => setting.name === name)?.value;
  return found === undefined || found === null ? otherwise : String(found);
}
