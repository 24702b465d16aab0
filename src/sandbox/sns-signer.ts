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

/** The RSA key of the sandbox's SNS, and its certificate. Both are made when they are first needed. */
export class SnsSigner {
  #identity: Promise<{ privateKey: KeyObject; certificate: string }> | undefined;

  async certificate(): Promise<string> {
    return (await this.#made()).certificate;
  }

  async sign(envelope: Envelope, version: SignatureVersion): Promise<string> {
    const { privateKey } = await this.#made();
    const algorithm = version === "1" ? "sha1" : "sha256";
    return createSign(algorithm).update(stringToSign(envelope)).sign(privateKey, "base64");
  }

  #made() {
    this.#identity ??= promisify(generateKeyPair)("rsa", { modulusLength: 2048 }).then((keys) => ({
      privateKey: keys.privateKey,
      certificate: selfSignedCertificate(keys, "sns.sandbox.carillon"),
    }));
    return this.#identity;
  }
}

/** Each signed field that is there, as a line with its name and a line with its value. */
export function stringToSign(envelope: Envelope): string {
  const names = envelope.Type === "Notification" ? SIGNED.Notification : SIGNED.confirmation;
  return names
    .filter((name) => envelope[name] !== undefined)
    .map((name) => `${name}\n${envelope[name]}\n`)
    .join("");
}
