import { createHash } from "node:crypto";

/** A picture that every mail client shows: PNG, JPEG or GIF, named by its contents. */
export interface Picture {
  /** `{16 hexadecimal digits}.{png, jpg or gif}` */
  readonly name: string;
  readonly contentType: "image/png" | "image/jpeg" | "image/gif";
  readonly bytes: Buffer;
  readonly width: number;
  readonly height: number;
}

export const LARGEST_PICTURE = 1_048_576;

/** What the bytes are, by their own word; undefined for everything that is no such picture. */
export function readPicture(bytes: Buffer): Picture | undefined {
  const read = bytes.length > LARGEST_PICTURE ? undefined : (pngIn(bytes) ?? gifIn(bytes) ?? jpegIn(bytes));
  if (!read || read.width < 1 || read.height < 1) return undefined;
  const hash = createHash("sha256").update(bytes).digest("hex").slice(0, 16);
  return {
    name: `${hash}.${read.ending}`,
    contentType: read.contentType,
    bytes,
    width: read.width,
    height: read.height,
  };
}

type Read = Pick<Picture, "contentType" | "width" | "height"> & { readonly ending: string };

function pngIn(bytes: Buffer): Read | undefined {
  if (bytes.length < 24 || bytes.toString("latin1", 0, 8) !== "\x89PNG\r\n\x1a\n") return undefined;
  return { ending: "png", contentType: "image/png", width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) };
}

function gifIn(bytes: Buffer): Read | undefined {
  if (bytes.length < 10 || !/^GIF8[79]a$/.test(bytes.toString("latin1", 0, 6))) return undefined;
  return { ending: "gif", contentType: "image/gif", width: bytes.readUInt16LE(6), height: bytes.readUInt16LE(8) };
}

/** Walks from marker to marker until the frame that says how large the picture is. */
function jpegIn(bytes: Buffer): Read | undefined {
  if (bytes.length < 4 || bytes.readUInt16BE(0) !== 0xff_d8) return undefined;
  for (let at = 2; at + 9 < bytes.length; ) {
    const marker = bytes.readUInt16BE(at);
    if (marker < 0xff_01) return undefined;
    const isFrame = marker >= 0xff_c0 && marker <= 0xff_cf && ![0xff_c4, 0xff_c8, 0xff_cc].includes(marker);
    if (isFrame)
      return {
        ending: "jpg",
        contentType: "image/jpeg",
        height: bytes.readUInt16BE(at + 5),
        width: bytes.readUInt16BE(at + 7),
      };
    at += 2 + bytes.readUInt16BE(at + 2);
  }
  return undefined;
}
