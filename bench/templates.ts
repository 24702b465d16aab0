import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import MailComposer from "nodemailer/lib/mail-composer";
import { Config } from "../src/kernel/config.ts";
import { decodeDataRaw, encodeDataRaw } from "../src/mechanisms/data-raw/index.ts";
import {
  book,
  brandOf,
  composeMime,
  type Mail,
  mailFor,
  renderTemplate,
} from "../src/messaging/email_templates/service.ts";
import { measure, perSecond, type Row, repository, runBench } from "./kit.ts";

/**
 * From parameters to the bytes that a provider gets. The peer writes the same parts with nodemailer's composer; where the
 * row renders too, both render with our templates, so that only the writing differs.
 */
const ROUNDS = 7;
const COUNT = 4000;
const brand = brandOf(new Config([]));
const slug = "dailyReminder";
const example = book.get(slug).examples[0] as Record<string, string>;
const parametersOf = (index: number) => ({
  ...example,
  name: `Ada ${index}`,
  url: `https://app.example.com/l/${index}`,
});
const PEER = "nodemailer MailComposer";

function mailOf(index: number): Mail {
  return mailFor(book.get(slug), renderTemplate(slug, parametersOf(index), brand), {
    uid: `crl_em_${index}`,
    from: { name: "Carillon", address: "bells@carillon.example" },
    to: `ada${index}@example.com`,
    subject: "Your daily reminder",
    date: 1_790_000_000 + index,
    listUnsubscribe: { url: `https://app.example.com/api/1/emails/unsubscribe/1.${index}` },
  });
}

function byNodemailer(mail: Mail): Promise<Buffer> {
  const prepared = (value: string) => ({ prepared: true, value });
  return new MailComposer({
    from: { name: mail.from.name ?? "", address: mail.from.address },
    to: mail.to,
    subject: mail.subject,
    text: mail.text,
    html: mail.html,
    date: new Date(mail.date * 1000),
    messageId: `<${mail.messageId}>`,
    headers: {
      ...mail.headers,
      "List-Unsubscribe": prepared(`<${mail.listUnsubscribe?.url}>`),
      "List-Unsubscribe-Post": prepared("List-Unsubscribe=One-Click"),
    },
  })
    .compile()
    .build();
}

/** All of them one after another, as a process with one core does it. */
const rate = (work: (index: number) => unknown) =>
  perSecond(COUNT, async () => {
    for (let index = 0; index < COUNT; index++) await work(index);
  });

export async function run(): Promise<readonly Row[]> {
  const mails = Array.from({ length: COUNT }, (_, index) => mailOf(index));
  const story = { email: { ...example, uid: "crl_em_1", retry: 0 }, info: { step: "send", extra: null } };
  const packed = encodeDataRaw(story);
  const unit = "mails/s";
  const rows = [
    await measure(ROUNDS, {
      metric: "check parameters, render, write MIME",
      unit,
      peerName: `our rendering, ${PEER}`,
      ours: () => rate((index) => composeMime(mailOf(index))),
      peer: () => rate((index) => byNodemailer(mailOf(index))),
    }),
    await measure(ROUNDS, {
      metric: "write MIME of rendered parts",
      unit,
      peerName: PEER,
      ours: () => rate((index) => composeMime(mails[index]!)),
      peer: () => rate((index) => byNodemailer(mails[index]!)),
    }),
    await measure(ROUNDS, {
      metric: "data_raw written and read, 300 bytes",
      unit: "callbacks/s",
      peerName: "node:zlib, level 6",
      ours: () => rate(() => decodeDataRaw(encodeDataRaw(story))),
      peer: () =>
        rate(() => {
          const text = gzipSync(JSON.stringify(story), { level: 6 }).toString("base64url");
          return JSON.parse(gunzipSync(Buffer.from(text, "base64url")).toString());
        }),
    }),
  ];
  const rendering = await rate((index) => renderTemplate(slug, parametersOf(index), brand));
  return runBench("templates", "Mails beside nodemailer", rows, {
    peers: { nodemailer: nodemailerVersion() },
    notes: [
      `Rendering alone, with its parameters checked: ${Math.round(rendering / 1000).toLocaleString("en-US")},000 mails/s.`,
      `The mail is ${composeMime(mails[0]!).length.toLocaleString("en-US")} bytes, text and HTML; data_raw is ${packed.length} characters.`,
    ],
  });
}

/** Carillon runs on it too, so it stands among its own packages and not among the peers. */
function nodemailerVersion(): string {
  const file = join(repository(), "node_modules", "nodemailer", "package.json");
  return (JSON.parse(readFileSync(file, "utf8")) as { version: string }).version;
}
