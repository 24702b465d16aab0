import type { FastifyError, FastifyReply, FastifyRequest } from "fastify";
import { hasZodFastifySchemaValidationErrors } from "fastify-type-provider-zod";
import { z } from "zod";
import type { Context } from "../../jobs/context.ts";
import { CarillonError, type ErrorFactory, kernelErrors } from "../../kernel/errors.ts";
import { isConnectionLoss } from "../../kernel/redis/index.ts";
import { errors } from "./errors.ts";
import { describeError, presentable } from "./scrub.ts";

/** The one shape of every refusal. */
export const Failure = z
  .object({
    type: z.string().meta({ description: "The code that programs decide on" }),
    message: z.string(),
    hint: z.string().optional().meta({ description: "What to do next" }),
    detail: z.unknown().optional(),
    request_id: z.string(),
  })
  .meta({ id: "Failure", description: "Every refusal and failure has this shape." });

const RETRY_UNAVAILABLE = 5;
const RETRY_FULL = 10;

const BY_FRAMEWORK_CODE: Readonly<Record<string, ErrorFactory>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: errors.body_too_large,
  FST_ERR_CTP_INVALID_JSON_BODY: errors.malformed_json,
  FST_ERR_CTP_INVALID_MEDIA_TYPE: errors.unsupported_media_type,
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: errors.bad_request,
  FST_ERR_BAD_URL: errors.bad_url,
  FST_ERR_MAX_PARAM_LENGTH: errors.bad_url,
  FST_REQ_FILE_TOO_LARGE: errors.body_too_large,
  FST_PARTS_LIMIT: errors.body_too_large,
  FST_FILES_LIMIT: errors.body_too_large,
  FST_FIELDS_LIMIT: errors.body_too_large,
  FST_INVALID_MULTIPART_CONTENT_TYPE: errors.unsupported_media_type,
};

/** SQLSTATE classes and codes of a database that is away, going down or full, and what the driver says then. */
const SQL_AWAY = /^(08...|57P0[123]|53[0-9A-Z]{3}|ECONNREFUSED|ENOTFOUND|ETIMEDOUT|EHOSTUNREACH|EAI_AGAIN)$/;
const SQL_AWAY_TEXT = /^(Connection terminated|timeout exceeded when trying to connect|PGlite is clos)/;

/** What an error is to the outside: a refusal as it was declared, or `internal_error` that says nothing of the inside. */
export function publicError(error: unknown): CarillonError {
  if (error instanceof CarillonError) return publicCarillonError(error);
  if (hasZodFastifySchemaValidationErrors(error)) return invalidRequest(error as unknown as FastifyError);
  const { code, message = "", statusCode } = error as { code?: string; message?: string; statusCode?: number };
  const known = code === undefined ? undefined : BY_FRAMEWORK_CODE[code];
  if (known) return known({ cause: error });
  if (error instanceof SyntaxError && statusCode === 400) return errors.malformed_json({ cause: error });
  if ((code !== undefined && SQL_AWAY.test(code)) || SQL_AWAY_TEXT.test(message))
    return kernelErrors.sql_unavailable({ retryAfter: RETRY_UNAVAILABLE, cause: error });
  if (message.startsWith("OOM command not allowed"))
    return kernelErrors.redis_full({ retryAfter: RETRY_FULL, cause: error });
  if (isConnectionLoss(error)) return kernelErrors.redis_unavailable({ retryAfter: RETRY_UNAVAILABLE, cause: error });
  if (code?.startsWith("FST_ERR_CTP_")) return errors.bad_request({ cause: error });
  return errors.internal_error({ cause: error });
}

function publicCarillonError(error: CarillonError): CarillonError {
  switch (error.code) {
    case kernelErrors.redis_full.code:
      return kernelErrors.redis_full({ retryAfter: RETRY_FULL, cause: error });
    case kernelErrors.outcome_unknown.code:
      return kernelErrors.outcome_unknown({
        message: "The connection to Redis was lost on the way; the request may have been queued.",
        cause: error,
      });
    case kernelErrors.redis_unavailable.code:
      return kernelErrors.redis_unavailable({ retryAfter: error.retryAfter ?? RETRY_UNAVAILABLE, cause: error });
    case kernelErrors.sql_unavailable.code:
      return kernelErrors.sql_unavailable({ retryAfter: error.retryAfter ?? RETRY_UNAVAILABLE, cause: error });
    default:
      return error.status === 500 ? errors.internal_error({ cause: error }) : error;
  }
}

function invalidRequest(error: FastifyError): CarillonError {
  const place = error.validationContext === "querystring" ? "query" : (error.validationContext ?? "body");
  const detail = (error.validation ?? []).map((issue) => ({
    in: place,
    path: issue.instancePath.split("/").filter(Boolean).join("."),
    message: issue.message ?? "is not valid",
  }));
  const first = detail[0];
  const where = [place, first?.path].filter(Boolean).join(".");
  return errors.invalid_request({ message: `${where}: ${first?.message ?? "is not valid"}`, detail });
}

/** A failure as it is written, wherever it is written. */
export function failureBody(failure: CarillonError, id: string): z.input<typeof Failure> {
  const { code: type, message, hint, detail } = failure;
  return { type, message, hint, detail, request_id: id };
}

/** Writes a failure in the uniform shape, with its headers. */
export function sendFailure(request: FastifyRequest, reply: FastifyReply, failure: CarillonError): FastifyReply {
  if (failure.retryAfter !== undefined) reply.header("retry-after", String(Math.max(1, Math.ceil(failure.retryAfter))));
  if (failure.status === 401) reply.header("www-authenticate", 'Bearer realm="carillon"');
  return reply
    .code(failure.status)
    .type("application/json; charset=utf-8")
    .serializer((payload) => JSON.stringify(payload))
    .send(failureBody(failure, request.id));
}

/** Answers whatever a route threw; what nobody expected is logged and alerted, with the request id that the answer has. */
export function failureHandler(ctx: Context) {
  return (error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    const failure = publicError(error);
    const where = `${request.method} ${request.routeOptions.url ?? "(no route)"}`;
    if (failure.code === errors.internal_error.code) {
      ctx.log.error({ request_id: request.id, route: where, error: describeError(error) }, "request failed");
      ctx.alerts.error(presentable(error), `${where}, request ${request.id}`);
    } else if (failure.status >= 503) {
      ctx.log.warn(
        { request_id: request.id, route: where, error: describeError(error) },
        "request could not be served",
      );
      if (failure.code === kernelErrors.redis_full.code)
        ctx.alerts.warning("redis:full", "Redis refuses writes because its memory is full", { urgent: true });
    }
    return sendFailure(request, reply, failure);
  };
}
