import { readFileSync } from "node:fs";
import type { Clock } from "../../kernel/clock.ts";
import type { Config } from "../../kernel/config.ts";
import { kernelErrors } from "../../kernel/errors.ts";
import { errors } from "./errors.ts";
import { isMailUrl } from "./parameters.ts";
import { LARGEST_PICTURE, type Picture, readPicture } from "./picture.ts";
import { publicUrl } from "./public-url.ts";
import { settings } from "./settings.ts";
import type { Attachment } from "./template.ts";

/** The picture on top of every mail: linked to this installation, or inside the mail itself. */
export interface Logo {
  readonly picture: Picture;
  /** What `src` says: an address, or `cid:` and its id. */
  readonly src: string;
  /** As shown: half as many as the picture has, so that it is sharp everywhere. */
  readonly width: number;
  readonly height: number;
  /** Where it travels inside the mail. */
  readonly attachment?: Attachment;
}

const CID = "logo@carillon";
const TALLEST = 40;
const WIDEST = 280;
/** Seconds in which a mail must be written. */
const PATIENCE = 5;

export const isAddress = (source: string): boolean => /^https?:\/\//i.test(source);

export function logoFrom(config: Config, picture: Picture): Logo {
  const scale = Math.min(0.5, TALLEST / picture.height, WIDEST / picture.width);
  const size = {
    width: Math.max(1, Math.round(picture.width * scale)),
    height: Math.max(1, Math.round(picture.height * scale)),
  };
  if (!config.get(settings.brandLogoInline)) {
    const base = config.get(publicUrl).replace(/\/+$/, "");
    return { picture, ...size, src: `${base}/api/1/emails/assets/${picture.name}` };
  }
  const { name, contentType, bytes } = picture;
  return {
    picture,
    ...size,
    src: `cid:${CID}`,
    attachment: { filename: `logo${name.slice(name.lastIndexOf("."))}`, contentType, content: bytes, cid: CID },
  };
}

/** A logo that is a file is read at start; one that cannot be used stops it there. */
export function readLogo(path: string): Picture {
  const wrong = (why: string) =>
    kernelErrors.invalid_settings({
      message: `The configuration is not valid:\n  ${settings.brandLogo.env}=${JSON.stringify(path)} ${why}. It is: ${settings.brandLogo.doc}`,
    });
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch (error) {
    throw wrong(`cannot be read: ${(error as Error).message}`);
  }
  const picture = readPicture(bytes);
  if (!picture) throw wrong(`is no PNG, JPEG or GIF of at most ${LARGEST_PICTURE} bytes`);
  return picture;
}

/** The address comes from the operator's own settings; only its answer is not trusted. */
export async function fetchLogo(url: string, clock: Clock): Promise<Picture> {
  const answered = new AbortController();
  const late = new AbortController();
  void clock.sleep(PATIENCE, answered.signal).then((passed) => {
    if (passed) late.abort();
  });
  try {
    if (!isMailUrl(url)) throw new TypeError("it is not https");
    const response = await fetch(url, { signal: late.signal, redirect: "error" });
    if (!response.ok) throw new Error(`it answers ${response.status}`);
    const picture = readPicture(await bounded(response));
    if (!picture) throw new TypeError("it is no PNG, JPEG or GIF");
    return picture;
  } catch (cause) {
    if (late.signal.aborted) throw errors.template_too_slow({ message: `The logo did not come within ${PATIENCE} s.` });
    throw errors.template_asset_unreachable({
      message: `The logo could not be fetched: ${(cause as Error).message}`,
      cause,
    });
  } finally {
    answered.abort();
  }
}

async function bounded(response: Response): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of response.body ?? []) {
    size += part.length;
    if (size > LARGEST_PICTURE) throw new RangeError(`it has more than ${LARGEST_PICTURE} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts);
}
