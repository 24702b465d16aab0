import { defineErrors } from "../../kernel/errors.ts";

export const dataRawErrors = defineErrors({
  bad_data_raw: {
    status: 500,
    doc: "A callback's data_raw cannot be read: it is damaged, or larger than its limit.",
    hint: "The failed job keeps the text as it came; `carillon jobs failed` shows it.",
  },
});
