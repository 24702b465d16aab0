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
  const destination = options.pretty
    ? pino.transport({ target: "pino-pretty", options: { translateTime: "HH:MM:ss", ignore: "pid,hostname,name" } })
    : pino.destination({ sync: false });
  const log = pino({ level: options.level, name: options.name, redact }, destination);
  plain.set(log, pino({ level: options.level, name: options.name }, destination));
  return log;
}

const plain = new WeakMap<Log, Log>();

/**
 * The same log without its search for secrets, which costs more than writing the line: for lines of many a second whose
 * fields are all known to be harmless.
 */
export function harmless(log: Log): Log {
  return plain.get(log) ?? log;
}

export const silentLog: Log = pino({ level: "silent" });
