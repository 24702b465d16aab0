import { domains } from "../../domains.ts";
import { type OpenApiDocument, openApiDocument } from "../http/index.ts";

/** What is read of a JSON schema. The rest of it limits values, which types cannot say. */
interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly items?: Schema | false;
  readonly prefixItems?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: Schema | boolean;
  readonly propertyNames?: Schema;
  readonly description?: string;
}

type Content = Readonly<Record<string, { readonly schema?: Schema }>>;

interface Operation {
  readonly summary?: string;
  readonly description?: string;
  readonly parameters?: readonly {
    readonly in: string;
    readonly name: string;
    readonly required?: boolean;
    readonly description?: string;
    readonly schema: Schema;
  }[];
  readonly requestBody?: { readonly required?: boolean; readonly content: Content };
  readonly responses: Readonly<Record<string, { readonly content?: Content }>>;
}

/** Where a type stands. What is sent may be readonly and undefined; what is answered is plain. */
interface Place {
  readonly indent: string;
  readonly sent: boolean;
}

const METHODS = ["get", "post", "put", "patch", "delete"] as const;
const HEAD = `// Generated from the OpenAPI description by \`npm run docs\`. Changes here are overwritten.
`;

/** The types of the client, from the description of the whole house. */
export async function clientSchema(): Promise<{ readonly path: string; readonly text: string }> {
  return { path: "src/client/schema.ts", text: schemaText(await openApiDocument(domains)) };
}

/** Types of every route of a description, by method and path, and of the schemas that have names. */
export function schemaText({ paths, components }: OpenApiDocument): string {
  const methods = METHODS.map((method) => {
    const routes = Object.entries(paths).flatMap(([path, operations]) => {
      const operation = operations[method] as Operation | undefined;
      return operation ? [routeText(path, operation)] : [];
    });
    return `  ${method}: {\n${routes.join("")}  };\n`;
  });
  const routes = `/** Every route, by method and path: what it takes, and what it answers. */\nexport interface Routes {\n${methods.join("")}}\n`;
  const named = Object.entries((components?.schemas ?? {}) as Record<string, Schema>)
    .filter(([name]) => name === "Failure" || new RegExp(`: .*\\b${typeName(name)}\\b`).test(routes))
    .map(([name, schema]) => `\nexport type ${typeName(name)} = ${typeOf(schema, { indent: "", sent: false })};\n`);
  return `${HEAD}\n${routes}${named.join("")}`;
}

function routeText(path: string, operation: Operation): string {
  const members = [
    parametersText("path", operation),
    parametersText("query", operation),
    bodyText(operation),
    `      answer: ${answerOf(operation)};\n`,
  ];
  return `${comment([operation.summary, operation.description], "    ")}    ${JSON.stringify(path)}: {\n${members.join("")}    };\n`;
}

function parametersText(place: "path" | "query", { parameters = [] }: Operation): string {
  const own = parameters.filter((parameter) => parameter.in === place);
  if (own.length === 0) return "";
  const schema: Schema = {
    properties: Object.fromEntries(
      own.map(({ name, schema, description }) => [name, { ...schema, ...(description ? { description } : {}) }]),
    ),
    required: own.flatMap(({ name, required }) => (required ? [name] : [])),
    additionalProperties: false,
  };
  const optional = schema.required!.length === 0;
  return `      ${place}${optional ? "?" : ""}: ${typeOf(schema, { indent: "      ", sent: true })};\n`;
}

function bodyText({ requestBody }: Operation): string {
  if (!requestBody) return "";
  const { content } = requestBody;
  if (content["multipart/form-data"]) return "      body: FormData;\n";
  const json = content["application/json"]?.schema;
  if (!json) return "      body?: Blob | ArrayBuffer | string;\n";
  const optional = requestBody.required === false;
  return `      body${optional ? "?" : ""}: ${typeOf(json, { indent: "      ", sent: true })};\n`;
}

/** The types of all successes that are described; a route that describes none answers nothing, or a page. */
function answerOf({ responses }: Operation): string {
  const successes = Object.entries(responses).flatMap(([status, { content }]) =>
    /^2/.test(status) ? [content?.["application/json"]?.schema ?? {}] : [],
  );
  return successes.length === 0 ? "unknown" : union(successes, { indent: "      ", sent: false });
}

function typeOf(schema: Schema, place: Place): string {
  if (schema.$ref !== undefined) return typeName(schema.$ref.slice(schema.$ref.lastIndexOf("/") + 1));
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return [...new Set(schema.enum.map((value) => JSON.stringify(value)))].join(" | ");
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices) return union(choices, place);
  if (schema.allOf) return schema.allOf.map((part) => wrapped(typeOf(part, place))).join(" & ");
  if (Array.isArray(schema.type))
    return union(
      schema.type.map((type) => ({ ...schema, type })),
      place,
    );
  switch (schema.type ?? (schema.properties ? "object" : undefined)) {
    case "string":
      return "string";
    case "number":
    case "integer":
      return "number";
    case "boolean":
      return "boolean";
    case "null":
      return "null";
    case "array":
      return arrayText(schema, place);
    case "object":
      return objectText(schema, place);
    default:
      return "unknown";
  }
}

function union(choices: readonly Schema[], place: Place): string {
  const types = [...new Set(choices.map((choice) => typeOf(choice, place)))];
  return types.includes("unknown") ? "unknown" : types.join(" | ");
}

/** `a | b` in brackets, where it stands beside something that binds more tightly. */
const wrapped = (type: string) =>
  /^\w+(<[^|&]*>)?$|^\{[\s\S]*\}$/.test(type) && !/\} [|&] /.test(type) ? type : `(${type})`;

function arrayText({ items, prefixItems }: Schema, place: Place): string {
  const readonly = place.sent ? "readonly " : "";
  if (!prefixItems) return `${readonly}${wrapped(items ? typeOf(items, place) : "unknown")}[]`;
  const rest = items ? [`...${wrapped(typeOf(items, place))}[]`] : [];
  return `${readonly}[${[...prefixItems.map((item) => typeOf(item, place)), ...rest].join(", ")}]`;
}

function objectText(schema: Schema, place: Place): string {
  const { properties = {}, required = [], additionalProperties: others, propertyNames } = schema;
  const names = Object.keys(properties);
  if (names.length === 0) {
    if (others === false) return "Record<string, never>";
    const value = typeof others === "object" ? typeOf(others, place) : "unknown";
    if (!propertyNames?.enum) return `Record<string, ${value}>`;
    const record = `Record<${typeOf(propertyNames, place)}, ${value}>`;
    return propertyNames.enum.every((name) => required.includes(name as string)) ? record : `Partial<${record}>`;
  }
  const inner = { ...place, indent: `${place.indent}  ` };
  const members = Object.entries(properties).map(([name, property]) => {
    const key = /^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name);
    const type = typeOf(property, inner);
    const optional = !required.includes(name);
    const absent = optional && place.sent && type !== "unknown" ? " | undefined" : "";
    return `${comment([property.description], inner.indent)}${inner.indent}${key}${optional ? "?" : ""}: ${type}${absent};\n`;
  });
  // What has no name of its own may be anything: a narrower signature would have to fit the named ones too.
  const rest = others !== undefined && others !== false ? `${inner.indent}[name: string]: unknown;\n` : "";
  return `{\n${members.join("")}${rest}${place.indent}}`;
}

function comment(sentences: readonly (string | undefined)[], indent: string): string {
  const text = sentences
    .flatMap((sentence) =>
      sentence ? [/[.!?…]$/.test(sentence) || sentences.length === 1 ? sentence : `${sentence}.`] : [],
    )
    .join(" ")
    .replaceAll("*/", "*\\/")
    .replaceAll(/\s+/g, " ");
  return text === "" ? "" : `${indent}/** ${text} */\n`;
}

const typeName = (name: string) => name.replaceAll(/[^A-Za-z0-9_]/g, "_");
