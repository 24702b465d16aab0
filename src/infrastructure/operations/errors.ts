import { defineErrors } from "../../kernel/errors.ts";

export const errors = defineErrors({
  correction_unreadable: {
    status: 422,
    doc: "The corrected entry cannot be read by the queue's consumer either, so it is not put back.",
    hint: "`GET /api/1/admin/keys/explain?name=` with the queue's name tells the shape of its entries.",
  },
});
