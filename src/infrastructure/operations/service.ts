export { readRecentAlerts } from "./recent-alerts.ts";
export { type JobReport, readReports } from "./reports.ts";
