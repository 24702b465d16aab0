import { createSign, generateKeyPair, type KeyObject } from "node:crypto";
import { promisify } from "node:util";
import { selfSignedCertificate } from "./certificate.ts";

export type SignatureVersion = "1" | "2";

/** An SNS message before it is signed. Which fields are signed depends on its type. */
export type Envelope = Readonly<Record<string, string>> & { readonly Type: string };

const SIGNED = {
  Notification: ["Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"],
  confirmation: ["Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"],
} as const;

export const CERTIFICATE_PATH = "/SimpleNotificationService-sandbox.pem";

interface Identity {
  readonly privateKey: KeyObject;
  readonly certificate: string;
}

/** Made when it is first needed, and then the process's own: making a key is slow, and nobody gains by a second one. */
let identity: Promise<Identity> | undefined;

function ownIdentity(): Promise<Identity> {
  identity ??= promisify(generateKeyPair)("rsa", { modulusLength: 2048 }).then((keys) => ({
    privateKey: keys.privateKey,
    certificate: selfSignedCertificate(keys, "sns.sandbox.carillon"),
  }));
  return identity;
}

/** The certificate of the sandbox's SNS, as PEM. */
export async function snsCertificate(): Promise<string> {
  return (await ownIdentity()).certificate;
}

/** RSA over the signed fields: with SHA-1 in version 1, with SHA-256 in version 2. */
export async function snsSignature(envelope: Envelope, version: SignatureVersion): Promise<string> {
  const { privateKey } = await ownIdentity();
  return createSign(version === "1" ? "sha1" : "sha256")
    .update(stringToSign(envelope))
    .sign(privateKey, "base64");
}

/** Each signed field that is there, as a line with its name and a line with its value. */
function stringToSign(envelope: Envelope): string {
  const names = envelope.Type === "Notification" ? SIGNED.Notification : SIGNED.confirmation;
  return names
    .filter((name) => envelope[name] !== undefined)
    .map((name) => `${name}\n${envelope[name]}\n`)
    .join("");
}
