export { alertKeys, RECENT_ALERTS, RecentAlert } from "./keys.ts";
export { REDACTED, redact, truncate } from "./redact.ts";
export { AlertReporter, type ReporterOptions } from "./reporter.ts";
export { alertSettings } from "./settings.ts";
