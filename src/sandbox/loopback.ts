import { isIP } from "node:net";
import { defineErrors } from "../kernel/errors.ts";

export const sandboxErrors = defineErrors({
  sandbox_must_be_local: {
    status: 500,
    doc: "The sandbox was told to listen on an address that others can reach.",
    hint: "Give it 127.0.0.1 or ::1.",
  },
});

/** Whether only this machine can reach an address. */
export function isLoopback(host: string): boolean {
  const bare = host.replace(/^\[|\]$/g, "").toLowerCase();
  if (bare === "localhost" || bare === "::1") return true;
  const four = bare.replace(/^::ffff:/, "");
  return isIP(four) === 4 && four.startsWith("127.");
}
