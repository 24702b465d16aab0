import { createSign, type KeyObject } from "node:crypto";

/** Tags and identifiers of ASN.1, as far as a certificate that signs for itself needs them. */
const SEQUENCE = 0x30;
const SET = 0x31;
const INTEGER = 0x02;
const BIT_STRING = 0x03;
const OBJECT = 0x06;
const UTF8 = 0x0c;
const UTC_TIME = 0x17;
const VERSION = 0xa0;
const COMMON_NAME = Buffer.from([0x55, 0x04, 0x03]);
const SHA256_WITH_RSA = Buffer.from([0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0b]);
const NULL = Buffer.from([0x05, 0x00]);

/**
 * A certificate of an RSA key, signed by that key, as PEM. It holds from 2020 to 2049, whatever time the clock tells.
 * The platform reads certificates and cannot write them, hence the bytes by hand.
 */
export function selfSignedCertificate(
  keys: { publicKey: KeyObject; privateKey: KeyObject },
  commonName: string,
): string {
  const algorithm = element(SEQUENCE, element(OBJECT, SHA256_WITH_RSA), NULL);
  const attribute = element(SEQUENCE, element(OBJECT, COMMON_NAME), element(UTF8, Buffer.from(commonName)));
  const name = element(SEQUENCE, element(SET, attribute));
  const body = element(
    SEQUENCE,
    element(VERSION, element(INTEGER, Buffer.from([2]))),
    element(INTEGER, Buffer.from([1])),
    algorithm,
    name,
    element(SEQUENCE, time("200101000000Z"), time("491231235959Z")),
    name,
    keys.publicKey.export({ type: "spki", format: "der" }),
  );
  const signature = createSign("sha256").update(body).sign(keys.privateKey);
  const unusedBits = Buffer.from([0]);
  const certificate = element(SEQUENCE, body, algorithm, element(BIT_STRING, unusedBits, signature));
  const lines = certificate.toString("base64").match(/.{1,64}/g)!;
  return `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`;
}

function time(text: string): Buffer {
  return element(UTC_TIME, Buffer.from(text));
}

function element(tag: number, ...contents: readonly Buffer[]): Buffer {
  const content = Buffer.concat(contents);
  return Buffer.concat([Buffer.from([tag]), lengthOf(content.length), content]);
}

function lengthOf(length: number): Buffer {
  if (length < 0x80) return Buffer.from([length]);
  const bytes = Buffer.from(length.toString(16).padStart(length < 0x100 ? 2 : 4, "0"), "hex");
  return Buffer.concat([Buffer.from([0x80 | bytes.length]), bytes]);
}
