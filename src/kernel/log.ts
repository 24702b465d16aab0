import { type Logger, pino } from "pino";

export type Log = Logger;

/** Names of fields that never reach a log line, wherever they stand. */
const SECRET_FIELDS = [
  "authorization",
  "cookie",
  "password",
  "secret",
  "token",
  "access_token",
  "refresh_token",
  "jwt",
  "body",
  "code",
];

export function openLog(options: { level: string; pretty: boolean; name?: string }): Log {
  const redact = {
    paths: SECRET_FIELDS.flatMap((field) => [field, `*.${field}`, `*.*.${field}`]),
    censor: "[redacted]",
  };
  return pino(
    { level: options.level, name: options.name, redact },
    options.pretty
      ? pino.transport({ target: "pino-pretty", options: { translateTime: "HH:MM:ss", ignore: "pid,hostname,name" } })
      : pino.destination({ sync: false }),
  );
}

export const silentLog: Log = pino({ level: "silent" });
