import { errors } from "./errors.ts";
import { type Mail, refused } from "./mail.ts";
import { composeMime, headersOf } from "./mime.ts";
import type { Attachment } from "./template.ts";

const MAX_ATTACHMENTS = 10;
const MAX_ATTACHED = 5 * 1_048_576;
const MAX_INLINE = 1_048_576;
const MAX_MAIL = 10_485_760;
const FILENAME = /^[^\p{Cc}\p{Cs}/\\"\u2028\u2029]{1,150}$/u;
const CONTENT_TYPE = /^[a-z]+\/[a-z0-9.+-]+(?:; [a-z]+=[A-Za-z0-9._-]+)*$/i;
const CID = /^[A-Za-z0-9._-]+(?:@[A-Za-z0-9.-]+)?$/;

/** The bytes of any mail: the plain shape by the writer, attachments and inline images by nodemailer's composer. */
export function composeMail(mail: Mail): Buffer | Promise<Buffer> {
  return mail.attachments?.length
    ? composeWithParts(mail, mail.attachments).then(withinLimit)
    : withinLimit(composeMime(mail));
}

function withinLimit(raw: Buffer): Buffer {
  if (raw.length > MAX_MAIL)
    throw errors.template_output_too_large({
      message: `The mail has ${raw.length} bytes; at most ${MAX_MAIL} are sent.`,
    });
  return raw;
}

async function composeWithParts(mail: Mail, attachments: readonly Attachment[]): Promise<Buffer> {
  check(attachments);
  // Loaded by the first mail that needs it: most processes never do.
  const { default: MailComposer } = await import("nodemailer/lib/mail-composer");
  const structure = new MailComposer({
    text: mail.text,
    html: mail.html,
    attachments: attachments.map(({ filename, contentType, content, cid }) => ({
      filename,
      contentType,
      content,
      cid,
    })),
    // Contents are given, never fetched.
    disableFileAccess: true,
    disableUrlAccess: true,
  }).compile();
  const parts = withoutOwnHeaders(await structure.build());
  return Buffer.concat([Buffer.from(`${headersOf(mail).join("\r\n")}\r\n`, "latin1"), parts]);
}

/** Headers that say something about the mail are ours; only those about its structure are the composer's. */
function withoutOwnHeaders(built: Buffer): Buffer {
  const end = built.indexOf("\r\n\r\n");
  const headers = built.toString("latin1", 0, end).split(/\r\n(?![ \t])/);
  const kept = headers.filter((header) => /^(mime-version|content-)/i.test(header));
  return Buffer.concat([Buffer.from(kept.join("\r\n"), "latin1"), built.subarray(end)]);
}

function check(attachments: readonly Attachment[]): void {
  if (attachments.length > MAX_ATTACHMENTS) throw refused("the number of attachments", String(attachments.length));
  let [all, inline] = [0, 0];
  for (const { filename, contentType, content, cid } of attachments) {
    if (!FILENAME.test(filename)) throw refused("the name of an attachment", filename);
    if (!CONTENT_TYPE.test(contentType)) throw refused("the type of an attachment", contentType);
    if (cid !== undefined && !CID.test(cid)) throw refused("the cid of an attachment", cid);
    const size = Buffer.byteLength(content);
    all += size;
    if (cid !== undefined) inline += size;
  }
  if (all > MAX_ATTACHED) throw refused("the size of the attachments", String(all));
  if (inline > MAX_INLINE) throw refused("the size of the inline images", String(inline));
}
