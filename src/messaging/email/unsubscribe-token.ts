import { createCipheriv, createDecipheriv, createHash } from "node:crypto";
import { z } from "zod";
import { deriveKey } from "../../infrastructure/access/service.ts";
import type { Context } from "../../jobs/context.ts";
import type { Config } from "../../kernel/config.ts";
import { randomPart } from "../../kernel/ids.ts";
import { settings } from "./settings.ts";

/**
 * The token in a link for leaving a list: who, which list, which mail, encrypted under a key of this installation. It never
 * expires, because laws and mailboxes expect old links to work, and it says nothing to whoever finds it in a log.
 *
 *   {kid}.{base64url( iv 12 | ciphertext | tag 16 )}
 */
export interface UnsubscribeWish {
  readonly email: string;
  readonly list: string;
  readonly emailUid: string;
  readonly issuedAt: number;
}

const Content = z.object({ e: z.string(), l: z.string(), u: z.string(), t: z.number() });
const TOKEN = /^([a-z0-9]{1,8})\.([A-Za-z0-9_-]{40,1024})$/;
const IV = 12;
const TAG = 16;
/** The key that follows from the root secret. Configured names never begin with 0. */
const OWN_KID = "0";

export function unsubscribeUrl(ctx: Pick<Context, "config">, wish: UnsubscribeWish): string {
  return linkTo(ctx, writeToken(ctx, wish));
}

/** The same address without its host, for forms on the page itself. */
export function unsubscribePath(ctx: Pick<Context, "config">, token: string): string {
  return new URL(linkTo(ctx, token)).pathname;
}

const bases = new WeakMap<Config, string>();

function linkTo({ config }: Pick<Context, "config">, token: string): string {
  let base = bases.get(config);
  if (base === undefined) {
    base = `${config.get(settings.publicUrl).replace(/\/+$/, "")}/api/1/emails/unsubscribe/`;
    bases.set(config, base);
  }
  return base + token;
}

export function writeToken({ config }: Pick<Context, "config">, wish: UnsubscribeWish): string {
  const [kid, key] = keysIn(config)[0]!;
  const iv = randomPart(IV);
  const cipher = createCipheriv("aes-256-gcm", key, iv);
  const content = JSON.stringify({ e: wish.email, l: wish.list, u: wish.emailUid, t: wish.issuedAt });
  const sealed = Buffer.concat([iv, cipher.update(content, "utf8"), cipher.final(), cipher.getAuthTag()]);
  return `${kid}.${sealed.toString("base64url")}`;
}

/** What a token says; undefined for whatever we did not write. */
export function readToken({ config }: Pick<Context, "config">, token: string): UnsubscribeWish | undefined {
  const [, kid, text] = TOKEN.exec(token) ?? [];
  const key = keysIn(config).find(([name]) => name === kid)?.[1];
  if (!key || text === undefined) return undefined;
  const sealed = Buffer.from(text, "base64url");
  if (sealed.length <= IV + TAG) return undefined;
  try {
    const decipher = createDecipheriv("aes-256-gcm", key, sealed.subarray(0, IV));
    decipher.setAuthTag(sealed.subarray(-TAG));
    const content = Buffer.concat([decipher.update(sealed.subarray(IV, -TAG)), decipher.final()]);
    const { e, l, u, t } = Content.parse(JSON.parse(content.toString("utf8")));
    return { email: e, list: l, emailUid: u, issuedAt: t };
  } catch {
    return undefined;
  }
}

const known = new WeakMap<Config, readonly (readonly [kid: string, key: Buffer])[]>();

/** The configured keys, the writing one first, then the one that follows from the root secret. */
function keysIn(config: Config): readonly (readonly [kid: string, key: Buffer])[] {
  const held = known.get(config);
  if (held) return held;
  const configured = config.get(settings.unsubscribeKeys).map((entry) => {
    const colon = entry.indexOf(":");
    const key = createHash("sha256")
      .update(entry.slice(colon + 1))
      .digest();
    return [entry.slice(0, colon), key] as const;
  });
  const keys = [...configured, [OWN_KID, Buffer.from(deriveKey({ config }, "email-unsubscribe"))] as const];
  known.set(config, keys);
  return keys;
}
