import type { ProcessRoles } from "../../domain.ts";
import type { Context } from "../../jobs/context.ts";
import type { Config } from "../../kernel/config.ts";
import { pushSettings, smsSettings } from "../../providers/settings.ts";
import type { SandboxAddress } from "../../sandbox/clients.ts";
import { isLoopback } from "../../sandbox/loopback.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import { deriveKey } from "../access/service.ts";
import { errors } from "./errors.ts";
import { settings } from "./settings.ts";

export { errors } from "./errors.ts";

type Surroundings = Pick<Context, "config" | "clock" | "log">;

/** One per process at most; a test may have several processes in one. */
const running = new WeakMap<object, Sandbox>();

/**
 * The simulated providers live as long as the web process: they are asked by whoever sends, here or in another process
 * of this machine, and they answer the routes of this one.
 */
export async function startSandbox(ctx: Context, roles: ProcessRoles): Promise<() => Promise<void>> {
  if (!standsIn(ctx.config) || !roles.web) return async () => {};
  const sandbox = await open(ctx);
  running.set(ctx.config, sandbox);
  return async () => {
    running.delete(ctx.config);
    await sandbox.close();
  };
}

/** Whether simulated providers take the place of those that the settings do not name. */
export function standsIn(config: Config): boolean {
  const wanted = config.get(settings.enabled);
  if (wanted === "true") refuseSandbox(config, ["sandbox"]);
  return wanted === "true" || (wanted === "auto" && exposureOf(config) === undefined);
}

/** The simulated providers of this process. Raises `sandbox_off` when there are none. */
export function sandboxOf(ctx: Pick<Context, "config">): Sandbox {
  const sandbox = running.get(ctx.config);
  if (!sandbox) throw errors.sandbox_off();
  return sandbox;
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
 * Where the simulated providers answer, for whoever opens clients to them: the ones of this process, else those that the
 * settings promise in the web process of this machine.
 */
export function sandboxAddress(config: Config): SandboxAddress {
  const key = Buffer.from(deriveKey({ config }, "sandbox-twilio")).toString("hex");
  return {
    url: running.get(config)?.url ?? `http://127.0.0.1:${config.get(settings.port)}`,
    expoAccessToken: config.get(pushSettings.expoAccessToken),
    // The configured account, else one that follows from the root secret, which all processes share.
    twilio: {
      accountSid: config.get(smsSettings.twilioAccountSid) ?? `AC${key.slice(0, 32)}`,
      authToken: config.get(smsSettings.twilioAuthToken) ?? key.slice(32),
    },
  };
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
    subscribing: "at first mail" as const,
    seed: config.get(settings.seed),
    keep: config.get(settings.keep),
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
