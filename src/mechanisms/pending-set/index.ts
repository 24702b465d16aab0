export { type AuditedSet, inTwoPlaces, type Place, pendingFaults } from "./audit.ts";
export {
  type Healed,
  type NewPending,
  type Pending,
  PendingSet,
  type PendingSetPlan,
  pendingSet,
  type RemoveAnswer,
  type TakeAnswer,
  type UpdateAnswer,
} from "./pending-set.ts";
