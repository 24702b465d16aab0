import type { Redis } from "ioredis";
import { systemClock } from "../../src/kernel/clock.ts";
import { RedisConnection } from "../../src/kernel/redis/index.ts";
import type { TestRedis } from "./redis.ts";

/** How the connection dies at its command: the server never sees it, or does it and the reply is lost. */
export type Death = "before" | "after";

class ConnectionLost extends Error {
  override readonly name = "ConnectionLost";
}

/**
 * A connection of a process that dies at its Nth command. From that command on, nothing gets through: whatever the
 * process still tries fails, as it would if the process were gone.
 */
export class MortalConnection extends RedisConnection {
  /** Commands sent so far, so a first run can count the boundaries there are. */
  sent = 0;
  dead = false;
  /** The name of the command it died at. */
  diedAt: string | undefined;

  constructor(client: Redis, options: { dieAt?: number; death?: Death }) {
    // A dead process does not wait between its repeats, and neither should the test.
    super(client, { clock: { ...systemClock, sleep: async () => true } });
    const original = client.sendCommand.bind(client);
    client.sendCommand = ((command: Parameters<Redis["sendCommand"]>[0], stream?: never) => {
      // Connection set-up and script loading happen before the process does anything of its own.
      if (/^(info|client|hello|auth|select|script|quit|disconnect)$/i.test(command.name))
        return original(command, stream);
      if (this.dead) {
        command.reject(new ConnectionLost("Connection is closed."));
        return command.promise;
      }
      this.sent += 1;
      if (options.dieAt !== this.sent) return original(command, stream);
      this.dead = true;
      this.diedAt = command.name;
      if (options.death === "before") {
        command.reject(new ConnectionLost("Connection is closed."));
        return command.promise;
      }
      // The reply is swallowed: the caller only sees the connection close, after the server has done its work.
      const { resolve, reject } = command as unknown as { resolve: (v: unknown) => void; reject: (e: Error) => void };
      const lost = () => reject.call(command, new ConnectionLost("Connection is closed."));
      Object.assign(command, { resolve: lost, reject: lost });
      void resolve;
      return original(command, stream);
    }) as Redis["sendCommand"];
  }
}

export async function mortalConnection(
  server: TestRedis,
  options: { dieAt?: number; death?: Death } = {},
): Promise<MortalConnection> {
  const base = server.connect();
  await base.ready();
  const client = base.commands.duplicate({ enableAutoPipelining: false });
  client.on("error", () => {});
  await client.ping();
  return new MortalConnection(client, options);
}

/**
 * Runs `life` once to count its commands, then once per command and kind of death; after each death `afterlife` checks
 * that a fresh process recovers. Returns how many deaths were tried.
 */
export async function dieAtEveryCommand(
  server: TestRedis,
  plan: {
    /** Puts the keyspace into its first state. */
    prepare(): Promise<void>;
    /** The work during which the process dies; its error is expected. */
    life(connection: MortalConnection): Promise<void>;
    /** Recovers as a fresh process and asserts that nothing was lost or doubled. */
    afterlife(death: { at: number; kind: Death; command: string }): Promise<void>;
  },
): Promise<number> {
  await plan.prepare();
  const whole = await mortalConnection(server);
  await plan.life(whole);
  const boundaries = whole.sent;
  whole.commands.disconnect();
  let deaths = 0;
  for (let at = 1; at <= boundaries; at++)
    for (const kind of ["before", "after"] as const) {
      await plan.prepare();
      const mortal = await mortalConnection(server, { dieAt: at, death: kind });
      await plan.life(mortal).catch(() => {});
      mortal.commands.disconnect();
      if (!mortal.dead) continue;
      deaths += 1;
      await plan.afterlife({ at, kind, command: mortal.diedAt ?? "" });
    }
  if (deaths === 0) throw new Error("the life sent no command at which it could die");
  return deaths;
}
