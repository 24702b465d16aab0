import { settings as kinds } from "../../kernel/config.ts";

export const settings = {
  rebase: kinds.flag("stats.rebase", {
    default: false,
    doc: "allows the statistics timezone to change: at the next start all open days are closed in the old one, then the new one counts. Set it for one start only",
  }),
};
