import type { FastifyInstance } from "fastify";
import type { Clock } from "../../kernel/clock.ts";

export interface ListenPlan {
  readonly host: string;
  readonly port: number;
  /** How many following ports to try when this one is taken; none unless the caller says so. */
  readonly alternatives?: number;
}

/** Starts to accept connections; answers with the address that people can open. */
export async function listen(app: FastifyInstance, plan: ListenPlan): Promise<{ url: string; port: number }> {
  const last = plan.port + (plan.alternatives ?? 0);
  for (let port = plan.port; ; port++) {
    try {
      await app.listen({ host: plan.host, port });
      break;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE" || port >= last) throw error;
    }
  }
  const { port } = app.server.address() as { port: number };
  const shown = plan.host === "0.0.0.0" || plan.host === "::" ? "localhost" : plan.host;
  return { url: `http://${shown.includes(":") ? `[${shown}]` : shown}:${port}`, port };
}

export const CLOSE_GRACE = 25;

/**
 * Stops accepting, lets the requests on the way finish, and ends those that take longer than the grace. Answers whether
 * all of them finished by themselves.
 */
export async function closeServer(app: FastifyInstance, clock: Clock, grace = CLOSE_GRACE): Promise<boolean> {
  const done = new AbortController();
  const closed = app.close().then(() => true);
  const overdue = clock.sleep(grace, done.signal).then(() => false);
  const finished = await Promise.race([closed, overdue]);
  done.abort();
  if (!finished) app.server.closeAllConnections();
  await closed;
  return finished;
}
