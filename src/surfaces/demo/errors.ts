import { defineErrors } from "../../kernel/errors.ts";

export const errors = defineErrors({
  demo_not_possible: {
    status: 409,
    doc: "The demo lives on simulated providers alone, and these settings say otherwise.",
    hint: "Unset CARILLON_DEMO and the providers of push, SMS and email, in an environment of its own: CARILLON_DATA_DIR names another data folder.",
  },
  demo_database_in_use: {
    status: 409,
    doc: "The database holds people or touch points that are not of the demo, which would be drawn into it.",
    hint: "Use an empty database: CARILLON_DATA_DIR names another data folder, DATABASE_URL another database.",
  },
  demo_beside_worker: {
    status: 409,
    doc: "A worker of this house runs. A past that is filled in beside it would meet its present.",
    hint: "Stop it with Ctrl-C where it runs, run this command, and start it again.",
  },
  demo_under_way: {
    status: 409,
    doc: "The past of this house is being filled in by another process.",
    hint: "Wait until it is done; it takes a minute or two.",
  },
});
