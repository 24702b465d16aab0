import { defineErrors } from "../../kernel/errors.ts";

export const quarantineErrors = defineErrors({
  quarantined_entry_absent: {
    status: 404,
    doc: "There is no quarantined entry with this id; somebody may have dealt with it already.",
  },
  not_requeueable: {
    status: 409,
    doc: "The queue that this entry came from is not one that entries can be put back into.",
    hint: "Discard it, or repair the data by hand.",
  },
  member_required: {
    status: 422,
    doc: "The entry is a hash of a pending set, which does not say whose hash it is.",
    hint: "Name the member; the reason of the entry has it.",
  },
  already_pending: { status: 409, doc: "The pending set has this member again, with a hash of its own." },
});
