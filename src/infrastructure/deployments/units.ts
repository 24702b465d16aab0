import type { Config } from "../../kernel/config.ts";
import { errors } from "./errors.ts";
import { settings, type UnitKind } from "./settings.ts";

const BUILT_IN: Readonly<Record<string, UnitKind>> = {
  backend: "plain",
  jobs: "plain",
  websocket: "plain",
  "frontend-web": "build",
  "frontend-ssr-web": "build",
  "email-templates": "plain",
};

/** Everything that is updated one instance at a time, with how. */
export function unitsOf(config: Config): Readonly<Record<string, UnitKind>> {
  return { ...BUILT_IN, ...config.get(settings.units) };
}

export function unitKind(config: Config, repo: string): UnitKind {
  const units = unitsOf(config);
  const kind = Object.hasOwn(units, repo) ? units[repo] : undefined;
  if (!kind)
    throw errors.unknown_unit({ message: `no unit is named ${repo}; there are ${Object.keys(units).join(", ")}` });
  return kind;
}
