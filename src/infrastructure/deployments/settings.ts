import { z } from "zod";
import { settings as kinds } from "../../kernel/config.ts";

const UnitName = z.string().regex(/^[a-z][a-z0-9-]*$/);
export type UnitKind = "plain" | "build";

export const settings = {
  secret: kinds.optionalText("deployment.secret", {
    secret: true,
    doc: "whoever sends it may ask for updates at /api/1/continuous_deployment/update; unset = nobody may",
  }),
  expectedInstances: kinds.json<Readonly<Record<string, number>>>(
    "expected.instances",
    z.record(UnitName, z.number().int().min(0)),
    { default: {}, doc: 'how many instances of each unit should hear an update, as {"backend": 3}; others warn' },
  ),
  units: kinds.json<Readonly<Record<string, UnitKind>>>(
    "update.units",
    z.record(UnitName, z.enum(["plain", "build"])),
    {
      default: {},
      doc: 'units beyond the built-in ones, as {"landing-page": "build"}; build = made once and stored, plain = each instance updates itself',
    },
  ),
  updateCommand: kinds.optionalText("update.command", {
    doc: "run by the shell, detached, once an instance has stopped for its update; it must start the instance again. Unset = the process ends and its supervisor restarts it",
  }),
  buildCommand: kinds.optionalText("build.command", {
    doc: "run by the shell to build CARILLON_BUILD_REPO at CARILLON_BUILD_SHA into the tar.gz CARILLON_BUILD_OUTPUT. Unset = nothing is built, the bundled files are served",
  }),
  checkouts: kinds.json<Readonly<Record<string, string>>>("build.checkouts", z.record(UnitName, z.string()), {
    default: {},
    doc: 'the git checkout of each unit that is built, as {"frontend-web": "/srv/frontend-web"}: where commits are looked up',
  }),
};
