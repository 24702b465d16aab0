import { defineErrors } from "../../kernel/errors.ts";
import { objectStoreErrors } from "../../providers/object-store.ts";

export const errors = {
  ...objectStoreErrors,
  ...defineErrors({
    swept_during_upload: {
      status: 503,
      doc: "The upload took longer than its protection, so the object was removed again.",
      hint: "Upload it again; it gets another key.",
    },
    file_in_use: {
      status: 409,
      doc: "The file is still needed by something else.",
      hint: "Remove what refers to it first.",
    },
    upload_token_missing: {
      status: 401,
      doc: "This needs the token that came with the upload.",
      hint: "Send it as `Authorization: Bearer`, or as the query parameter jwt.",
    },
    upload_token_expired: { status: 401, doc: "The time for this upload is over.", hint: "Start a new upload." },
    upload_token_refused: { status: 403, doc: "The token is not one for this upload." },
    upload_aborted_or_completed: {
      status: 404,
      doc: "There is no such upload, or it no longer takes parts because it was completed, aborted or has expired.",
    },
    upload_not_found: { status: 404, doc: "There is no such upload." },
    part_does_not_exist: { status: 404, doc: "The upload has no part with this number." },
    part_already_uploaded: { status: 409, doc: "This part is stored already." },
    part_does_not_match: { status: 409, doc: "The part does not have the size that its byte range says." },
    part_too_large: { status: 413, doc: "A part has at most 1048576 bytes, and its request 65536 bytes more." },
    part_missing: {
      status: 422,
      doc: "The request has no file.",
      hint: "Send it as multipart/form-data with one field named file.",
    },
    too_many_parts: {
      status: 429,
      doc: "Too many parts of this upload were sent within a minute.",
      hint: "Wait as long as Retry-After says.",
    },
    other_bucket: { status: 422, doc: "This installation keeps its files in another bucket." },
  }),
};
