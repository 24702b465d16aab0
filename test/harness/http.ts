import { Writable } from "node:stream";
import type { FastifyInstance, LightMyRequestResponse } from "fastify";
import { type Logger, pino } from "pino";
import { type Domain, migrationsOf } from "../../src/domain.ts";
import { access } from "../../src/infrastructure/access/index.ts";
import { createAdminToken } from "../../src/infrastructure/access/service.ts";
import { settings as accessSettings } from "../../src/infrastructure/access/settings.ts";
import type { Context } from "../../src/jobs/context.ts";
import { Config, type Setting } from "../../src/kernel/config.ts";
import { Catalogue } from "../../src/kernel/keyspace/index.ts";
import { migrate } from "../../src/kernel/sql/index.ts";
import { usersDomain } from "../../src/people/users/index.ts";
import { buildServer, type ServerOptions } from "../../src/surfaces/http/index.ts";
import { openTestContext, type TestContext } from "./context.ts";

export interface Call {
  readonly token?: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly from?: string;
}

/** A server over a real Redis and a real SQL engine, called without a socket. */
export interface TestServer {
  readonly ctx: Context & Pick<TestContext, "clock" | "alerts" | "server" | "flush">;
  readonly app: FastifyInstance;
  readonly domains: readonly Domain[];
  /** An admin token that works. */
  readonly admin: string;
  /** Everything that was logged so far, as it was written. */
  readonly logged: () => string;
  /** Jobs that were enqueued inside transactions: runner name and arguments. */
  readonly committedJobs: { readonly name: string; readonly kwargs: unknown }[];
  call(method: string, path: string, call?: Call): Promise<LightMyRequestResponse>;
  /** Another server over the same state, with other settings. */
  another(options: Omit<TestServerOptions, "domains">): Promise<FastifyInstance>;
  close(): Promise<void>;
}

export interface TestServerOptions {
  /** Rooms beside users and access. */
  readonly domains?: readonly Domain[];
  readonly settings?: readonly (readonly [Setting<never> | Setting<unknown>, unknown])[];
  readonly server?: ServerOptions;
}

export async function openTestServer(options: TestServerOptions = {}): Promise<TestServer> {
  const base = await openTestContext({ sql: true });
  const lines: string[] = [];
  const committedJobs: { name: string; kwargs: unknown }[] = [];
  const config = new Config([]).with(
    [accessSettings.rootSecret, "a root secret for tests, long enough"],
    ...(options.settings ?? []),
  );
  const jobs = {
    runners: new Map(),
    enqueueIn: async (_tx: unknown, runner: { name: string }, kwargs: unknown) => {
      committedJobs.push({ name: runner.name, kwargs });
    },
  };
  const domains: Domain[] = [usersDomain(() => domains), access, ...(options.domains ?? [])];
  const ctx = Object.defineProperties(
    { jobs, catalogue: new Catalogue(domains), providers: {} },
    {
      ...Object.getOwnPropertyDescriptors(base),
      config: { value: config, enumerable: true },
      log: { value: logInto(lines), enumerable: true },
    },
  ) as unknown as TestServer["ctx"];
  await migrate(ctx.sql, domains.flatMap(migrationsOf));
  const app = await buildServer(ctx, domains, options.server);
  const others: FastifyInstance[] = [];
  const { token: admin } = await createAdminToken(ctx, { label: "test" });
  return {
    ctx,
    app,
    domains,
    admin,
    committedJobs,
    logged: () => lines.join(""),
    call: (method, path, { token, body, headers, from } = {}) =>
      app.inject({
        method: method as "GET",
        url: path,
        headers: { ...(token === undefined ? {} : { authorization: `Bearer ${token}` }), ...headers },
        ...(body === undefined ? {} : { payload: body as object }),
        ...(from === undefined ? {} : { remoteAddress: from }),
      }),
    another: async ({ settings = [], server }) => {
      const surroundings = Object.create(ctx, { config: { value: config.with(...settings) } }) as Context;
      const other = await buildServer(surroundings, domains, server);
      others.push(other);
      return other;
    },
    close: async () => {
      for (const each of [app, ...others]) await each.close();
      await base.close();
    },
  };
}

function logInto(lines: string[]): Logger {
  const sink = new Writable({
    write(chunk, _encoding, done) {
      lines.push(String(chunk));
      done();
    },
  });
  return pino({ level: "trace" }, sink);
}
