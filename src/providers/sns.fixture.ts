import { createPrivateKey, createSign, generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { type SnsEnvelope, type SnsType, signedText } from "./sns.ts";

/** What topics of SNS do, with keys of our own: certificates, envelopes, signatures. */
export const TOPIC = "arn:aws:sns:us-east-1:000000000000:mail";
export const CERTIFICATE_URL = "https://sns.us-east-1.amazonaws.com/SimpleNotificationService-0123abc.pem";

const der = (tag: number, ...parts: Uint8Array[]): Buffer => {
  const content = Buffer.concat(parts);
  const size = content.length;
  const long = size < 256 ? [0x81, size] : [0x82, size >> 8, size & 255];
  return Buffer.concat([Buffer.from([tag, ...(size < 128 ? [size] : long)]), content]);
};
const sequence = (...parts: Uint8Array[]) => der(0x30, ...parts);
const bytes = (text: string) => Buffer.from(text, "hex");
const SHA256_WITH_RSA = sequence(bytes("06092a864886f70d01010b"), bytes("0500"));
const ECDSA_WITH_SHA256 = sequence(bytes("06082a8648ce3d040302"));

function time(seconds: number): Buffer {
  const text = new Date(seconds * 1000).toISOString().replace(/[-:T]|\.\d+/g, "");
  return der(0x18, Buffer.from(text));
}

/** A certificate that its own key has signed, in PEM form. */
export function selfSigned(
  keys: { privateKey: KeyObject; publicKey: KeyObject },
  life: { from: number; to: number },
): string {
  const algorithm = keys.privateKey.asymmetricKeyType === "rsa" ? SHA256_WITH_RSA : ECDSA_WITH_SHA256;
  const name = sequence(der(0x31, sequence(bytes("0603550403"), der(0x0c, Buffer.from("sns.test")))));
  const content = sequence(
    bytes("a003020102"),
    bytes("020101"),
    algorithm,
    name,
    sequence(time(life.from), time(life.to)),
    name,
    keys.publicKey.export({ type: "spki", format: "der" }),
  );
  const signature = createSign("sha256").update(content).sign(keys.privateKey);
  const whole = sequence(content, algorithm, der(0x03, Buffer.from([0]), signature)).toString("base64");
  return `-----BEGIN CERTIFICATE-----\n${whole.match(/.{1,64}/g)!.join("\n")}\n-----END CERTIFICATE-----\n`;
}

export const rsaKeys = () => generateKeyPairSync("rsa", { modulusLength: 2048 });
export const ellipticKeys = () => generateKeyPairSync("ec", { namedCurve: "P-256" });

/** A signed envelope, with the headers that go with it. */
export function envelope(
  privateKey: KeyObject,
  now: number,
  change: Partial<SnsEnvelope> & { readonly Type?: SnsType } = {},
) {
  const type = change.Type ?? "Notification";
  const confirmation =
    type === "Notification"
      ? {}
      : { Token: "a token", SubscribeURL: "https://sns.us-east-1.amazonaws.com/?Action=ConfirmSubscription&Token=a" };
  const unsigned = {
    Type: type,
    MessageId: "6f2c4ad0-0000-4000-8000-000000000001",
    TopicArn: TOPIC,
    Message: '{"notificationType":"Delivery"}',
    Timestamp: new Date(now * 1000).toISOString(),
    SignatureVersion: "2" as const,
    SigningCertURL: CERTIFICATE_URL,
    ...confirmation,
    ...change,
  };
  const algorithm = unsigned.SignatureVersion === "1" ? "RSA-SHA1" : "RSA-SHA256";
  const Signature = sign(algorithm, Buffer.from(signedText(unsigned)), createPrivateKey(pem(privateKey)));
  const body = { ...unsigned, Signature: Signature.toString("base64") };
  return { body, headers: headersOf(body) };
}

export const headersOf = (body: { Type: string; TopicArn: string; MessageId: string }) => ({
  "x-amz-sns-message-type": body.Type,
  "x-amz-sns-topic-arn": body.TopicArn,
  "x-amz-sns-message-id": body.MessageId,
});

const pem = (key: KeyObject) => key.export({ type: "pkcs8", format: "pem" });
