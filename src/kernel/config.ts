import { readFileSync } from "node:fs";
import { z } from "zod";
import { kernelErrors } from "./errors.ts";

/**
 * A setting is declared once: its type, default, unit, meaning and whether it is a secret. Validation at start, the
 * output of `carillon config`, docs/configuration.md and the redacting of logs all come from the declaration.
 */
export interface Setting<T> {
  /** `job.concurrency`; the environment name follows from it unless `env` says otherwise. */
  readonly name: string;
  readonly env: string;
  readonly schema: z.ZodType<T>;
  readonly default: T;
  readonly doc: string;
  readonly unit?: string;
  readonly secret: boolean;
}

export interface SettingPlan<T> {
  readonly default: T;
  readonly doc: string;
  readonly unit?: string;
  readonly env?: string;
  readonly secret?: boolean;
}

function setting<T>(name: string, schema: z.ZodType<T>, plan: SettingPlan<T>): Setting<T> {
  const env =
    plan.env ??
    `CARILLON_${name
      .replaceAll(/([a-z])([A-Z])/g, "$1_$2")
      .replaceAll(".", "_")
      .toUpperCase()}`;
  return { name, env, schema, default: plan.default, doc: plan.doc, unit: plan.unit, secret: plan.secret ?? false };
}

const ON = /^(1|true|on|yes)$/i;
const OFF = /^(0|false|off|no)$/i;

/** Kinds of settings. Each reads the text of an environment variable. */
export const settings = {
  text: (name: string, plan: SettingPlan<string>) => setting(name, z.string(), plan),
  optionalText: (name: string, plan: Omit<SettingPlan<string | undefined>, "default">) =>
    setting<string | undefined>(name, z.string().optional(), { ...plan, default: undefined }),
  integer: (name: string, plan: SettingPlan<number> & { min?: number; max?: number }) =>
    setting(
      name,
      z.coerce
        .number()
        .int()
        .min(plan.min ?? 0)
        .max(plan.max ?? Number.MAX_SAFE_INTEGER),
      plan,
    ),
  seconds: (name: string, plan: SettingPlan<number> & { min?: number }) =>
    setting(name, z.coerce.number().min(plan.min ?? 0), { unit: "s", ...plan }),
  flag: (name: string, plan: SettingPlan<boolean>) =>
    setting(
      name,
      z.union([
        z.boolean(),
        z
          .string()
          .regex(ON)
          .transform(() => true),
        z
          .string()
          .regex(OFF)
          .transform(() => false),
      ]),
      plan,
    ),
  oneOf: <const T extends readonly [string, ...string[]]>(name: string, values: T, plan: SettingPlan<T[number]>) =>
    setting<T[number]>(name, z.enum(values), plan),
  /** Comma-separated. */
  listOf: <T>(name: string, item: z.ZodType<T>, plan: SettingPlan<readonly T[]>) =>
    setting<readonly T[]>(
      name,
      z.preprocess(
        (value) =>
          typeof value === "string"
            ? value
                .split(",")
                .map((part) => part.trim())
                .filter(Boolean)
            : value,
        z.array(item),
      ) as unknown as z.ZodType<readonly T[]>,
      plan,
    ),
  /** JSON text checked by a schema. */
  json: <T>(name: string, schema: z.ZodType<T>, plan: SettingPlan<T>) =>
    setting(
      name,
      z.preprocess((value, context) => {
        if (typeof value !== "string") return value;
        try {
          return JSON.parse(value);
        } catch {
          context.addIssue({ code: "custom", message: "is not valid JSON" });
          return z.NEVER;
        }
      }, schema) as unknown as z.ZodType<T>,
      plan,
    ),
};

export interface EffectiveSetting {
  readonly setting: Setting<unknown>;
  readonly value: unknown;
  readonly source: "environment" | ".env" | "default" | "override";
}

/** An address as people may see it: with its user and password replaced. */
export function withoutSecrets(url: string): string {
  return url.replace(/^([a-z+]+:\/\/)[^@/]*@/i, "$1***@");
}

/** A secret address keeps its host, which is what people look for; any other secret only says that it is set. */
export function masked({ setting, value }: Pick<EffectiveSetting, "setting" | "value">): unknown {
  if (!setting.secret || value === undefined) return value;
  const text = String(value);
  if (!/^[a-z+]+:\/\//i.test(text) || /^https?:/i.test(text)) return "********";
  return withoutSecrets(text).replace(/\?.*$/, "?***");
}

/** A setting for people and programs that look at it, with its secrets masked. */
export function shownSetting(entry: EffectiveSetting) {
  const { name, env, doc, unit, secret, default: usual } = entry.setting;
  return {
    name,
    env,
    value: masked(entry) ?? null,
    default: usual ?? null,
    source: entry.source,
    unit,
    secret,
    doc,
  };
}

/** The validated settings of this process. `get` takes the declaration, so its type is the setting's own. */
export class Config {
  readonly effective: readonly EffectiveSetting[];
  readonly #values: Map<string, unknown>;

  constructor(effective: readonly EffectiveSetting[]) {
    this.effective = effective;
    this.#values = new Map(effective.map(({ setting: { name }, value }) => [name, value]));
  }

  get<T>(wanted: Setting<T>): T {
    if (!this.#values.has(wanted.name)) return wanted.default;
    return this.#values.get(wanted.name) as T;
  }

  /** The same configuration with some settings replaced, as tests and commands need it. */
  with(...overrides: readonly (readonly [Setting<never> | Setting<unknown>, unknown])[]): Config {
    const replaced = new Set(overrides.map(([{ name }]) => name));
    return new Config([
      ...this.effective.filter(({ setting: { name } }) => !replaced.has(name)),
      ...overrides.map(([declaration, value]) => ({
        setting: declaration as Setting<unknown>,
        value,
        source: "override" as const,
      })),
    ]);
  }
}

/** Reads and checks every declared setting; all faults are reported together, each with what to do. */
export function loadConfig(
  declarations: readonly Setting<never>[] | readonly Setting<unknown>[],
  sources: { environment: Readonly<Record<string, string | undefined>>; dotenv?: Readonly<Record<string, string>> },
): Config {
  const faults: string[] = [];
  const names = new Set<string>();
  const effective = (declarations as readonly Setting<unknown>[]).map((declaration): EffectiveSetting => {
    if (names.has(declaration.env)) throw new TypeError(`the setting ${declaration.env} is declared twice`);
    names.add(declaration.env);
    const fromEnvironment = sources.environment[declaration.env];
    const written = fromEnvironment ?? sources.dotenv?.[declaration.env];
    if (written === undefined || written === "")
      return { setting: declaration, value: declaration.default, source: "default" };
    const parsed = declaration.schema.safeParse(written);
    const source = fromEnvironment === undefined ? ".env" : "environment";
    if (parsed.success) return { setting: declaration, value: parsed.data, source };
    const shown = declaration.secret ? "(hidden)" : JSON.stringify(written);
    const why = parsed.error.issues.map((issue) => issue.message).join("; ");
    faults.push(`${declaration.env}=${shown} (${source}): ${why}. It is: ${declaration.doc}`);
    return { setting: declaration, value: declaration.default, source };
  });
  if (faults.length > 0)
    throw kernelErrors.invalid_settings({ message: `The configuration is not valid:\n  ${faults.join("\n  ")}` });
  return new Config(effective);
}

/** `NAME=value` lines; `#` starts a comment, quotes around a value are dropped. A missing file is empty. */
export function readDotenv(path: string): Record<string, string> {
  let content: string;
  try {
    content = readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return {};
    throw error;
  }
  const entries = content.split(/\r?\n/).flatMap((line) => {
    const found = /^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*?)\s*$/.exec(line);
    if (!found) return [];
    const [, name, raw] = found as unknown as [string, string, string];
    const quoted = /^(["'])(.*)\1$/.exec(raw);
    return [[name, quoted ? quoted[2]! : raw.replace(/\s+#.*$/, "")] as const];
  });
  return Object.fromEntries(entries);
}
