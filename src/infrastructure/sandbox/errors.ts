import { defineErrors } from "../../kernel/errors.ts";
import { actionErrors } from "../../sandbox/actions.ts";
import { sandboxErrors } from "../../sandbox/loopback.ts";

export const errors = {
  ...defineErrors({
    sandbox_off: {
      status: 404,
      doc: "This process runs no simulated providers.",
      hint: "Set CARILLON_SANDBOX_ENABLED=true and start a web process.",
    },
    sandbox_only_local: {
      status: 403,
      doc: "Simulated providers answer on their own machine only, without a proxy in between.",
      hint: "Call from the same machine, by 127.0.0.1 or localhost.",
    },
    sandbox_message_unknown: {
      status: 404,
      doc: "The inbox holds no such message.",
      hint: "It keeps the newest ones only; list them to see which.",
    },
    sandbox_knob_unknown: {
      status: 422,
      doc: "There is no such knob, or it does not take such a value.",
      hint: "The names and values are those that GET /api/1/sandbox/knobs shows.",
    },
    sandbox_not_allowed: {
      status: 500,
      doc: "Simulated providers are in use where others could meet them.",
      hint: "Configure real providers, or set CARILLON_ALLOW_SANDBOX=1 to say that this is meant.",
    },
  }),
  ...actionErrors,
  ...sandboxErrors,
};
