import type { Readable } from "node:stream";
import { errors } from "./errors.ts";
import { PART_SIZE } from "./uploads.ts";

/** What the envelope of a multipart request may need beside the part itself. */
const ENVELOPE = 65_536;
export const PART_BODY_LIMIT = PART_SIZE + ENVELOPE;

/** What the server's multipart plugin adds to a request. */
interface MultipartRequest {
  isMultipart(): boolean;
  file(options: {
    limits: { fileSize: number; files: number };
    throwFileSizeLimit: boolean;
  }): Promise<{ readonly fieldname: string; readonly file: Readable & { readonly truncated: boolean } } | undefined>;
}

/** The bytes of the field `file`, of at most a part's size and the envelope's. */
export async function readPartBody(raw: unknown): Promise<Buffer> {
  const request = raw as MultipartRequest;
  if (!request.isMultipart()) throw errors.part_missing();
  const chunks: Buffer[] = [];
  try {
    const sent = await request.file({ limits: { fileSize: PART_BODY_LIMIT, files: 1 }, throwFileSizeLimit: false });
    if (sent?.fieldname !== "file") throw errors.part_missing();
    for await (const chunk of sent.file) chunks.push(chunk as Buffer);
    if (sent.file.truncated) throw errors.part_too_large();
  } catch (error) {
    // The plugin's own errors all mean that the body is not what was asked for.
    if (/^FST_/.test((error as { code?: string }).code ?? "")) throw errors.part_missing({ cause: error });
    throw error;
  }
  return Buffer.concat(chunks);
}
