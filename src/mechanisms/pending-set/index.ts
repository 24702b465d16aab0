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
