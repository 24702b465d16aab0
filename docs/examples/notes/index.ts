import { domain } from "../../../src/domain.ts";
import { errors } from "./errors.ts";
import { invariants } from "./invariants.ts";
import { recurringJobs, runners } from "./jobs.ts";
import { keys } from "./keys.ts";
import { routes } from "./routes.ts";
import { deleteNotesOf } from "./service.ts";
import { migrations } from "./tables.ts";

/** Notes that people write to themselves, and that go by themselves when their time is over. */
export const notes = domain({
  name: "notes",
  keys: [keys],
  errors,
  migrations,
  runners,
  recurring: recurringJobs,
  routes,
  invariants,
  onUserDeleting: (_ctx, tx, user) => deleteNotesOf(tx, user.id),
});
