import type { FastifySchemaCompiler } from "fastify";
import { validatorCompiler } from "fastify-type-provider-zod";

type Part = Parameters<typeof validatorCompiler>[0];

/** Checks a part of a request by its zod schema. An absent body comes as null here and has to be absent to the schema. */
export const checkBySchema: FastifySchemaCompiler<Part["schema"]> = (part) => {
  const check = validatorCompiler(part);
  return part.httpPart === "body" ? (body: unknown) => check(body === null ? undefined : body) : check;
};

/** For routes that read their body by themselves: it is described, but not checked. */
export const checkAllButBody: FastifySchemaCompiler<unknown> = (part) =>
  part.httpPart === "body" ? () => true : validatorCompiler(part as Part);
