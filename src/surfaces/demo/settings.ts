import { settings as kinds } from "../../kernel/config.ts";

export const settings = {
  demo: kinds.oneOf("demo", ["on", "off"], {
    default: "on",
    doc: "Whether `carillon up` makes a small app with people on an empty database and lets them live, so that there is something to see; off: never. Where a real provider is set, or the simulated ones may not run, there is no demo anyway",
  }),
};
