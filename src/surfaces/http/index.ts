export { type OpenApiDocument, openApiDocument } from "./document.ts";
export { errors as httpErrors } from "./errors.ts";
export { CLOSE_GRACE, closeServer, type ListenPlan, listen } from "./listen.ts";
export { LIVE_PATH, type LiveGateway } from "./live.ts";
export { checkReadiness, isReady, type Readiness } from "./readiness.ts";
export { buildServer, type ServerOptions } from "./server.ts";
export { settings as httpSettings } from "./settings.ts";
