export { jobProgress } from "./live.ts";
export { checkProgressToken, PROGRESS_AUDIENCE, progressErrors, progressToken } from "./progress-access.ts";
