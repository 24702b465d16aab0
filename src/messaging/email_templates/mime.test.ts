import fc from "fast-check";
import MailComposer from "nodemailer/lib/mail-composer";
import { describe, expect, test } from "vitest";
import { book } from "./book.ts";
import { composeMail } from "./composer.ts";
import { mailFor } from "./envelope.ts";
import { errors } from "./errors.ts";
import { anyLine, anyText, brand, parse, plainMail, settled } from "./mail.fixture.ts";
import type { Mail } from "./mail.ts";
import { html, writer } from "./markup.ts";
import { composeMime } from "./mime.ts";
import { accent } from "./pen.ts";
import { readyWriter } from "./ready.ts";
import { areSafeLines } from "./safe-lines.ts";

const linesOf = (raw: Buffer) => raw.toString("latin1").split("\r\n");
const headersIn = (raw: Buffer) => raw.toString("latin1").split("\r\n\r\n")[0]!.split("\r\n");
const sentence = fc.constantFrom("a", "the bells of the tower ring", "鐘".repeat(40), "x".repeat(120));

async function byNodemailer(mail: Mail): Promise<Buffer> {
  return new MailComposer({
    from: { name: mail.from.name ?? "", address: mail.from.address },
    to: mail.to,
    subject: mail.subject,
    text: mail.text,
    html: mail.html,
    date: new Date(mail.date * 1000),
    messageId: `<${mail.messageId}>`,
  })
    .compile()
    .build();
}

describe("the writer of plain mails", () => {
  test("any text comes out of a parser as it went in, in both parts, the subject and the sender's name", async () => {
    await fc.assert(
      fc.asyncProperty(anyText(400), anyText(400), anyLine(100), anyLine(40), async (text, html, subject, name) => {
        const title = `${subject.trim()}.`;
        const mail = {
          ...plainMail,
          text: `${text}|`,
          html: `${html}|`,
          subject: title,
          from: { ...plainMail.from, name },
        };
        const parsed = await parse(composeMime(mail));
        expect(settled(parsed.text)).toBe(settled(mail.text));
        expect(settled(parsed.html)).toBe(settled(mail.html));
        expect(parsed.subject).toBe(title);
        expect(parsed.from?.name).toBe(name.trim() === name ? name : parsed.from?.name);
        expect(parsed.from?.address).toBe("bells@carillon.example");
      }),
      { numRuns: 300 },
    );
  });

  test("a parser reads from it what it reads from nodemailer's composer", async () => {
    await fc.assert(
      fc.asyncProperty(anyText(300), anyText(300), sentence, anyLine(60), async (text, html, more, subject) => {
        const mail = {
          ...plainMail,
          text: `${text} ${more}|`,
          html: `<p>${html}${more}</p>`,
          subject: `${subject.trim()} ${more}`.trim(),
        };
        const [ours, theirs] = [await parse(composeMime(mail)), await parse(await byNodemailer(mail))];
        const story = ({ from, to, subject: title, date, messageId, text: plain, html: rich }: typeof ours) => ({
          from,
          to,
          title: title?.replaceAll(/\s+/g, " "),
          date,
          messageId,
          plain: settled(plain),
          rich: settled(rich),
        });
        expect(story(ours)).toEqual(story(theirs));
      }),
      { numRuns: 150 },
    );
  });

  test("every example of every template arrives as it was rendered", async () => {
    for (const template of book.templates)
      for (const example of template.examples) {
        const rendered = template.render(template.parameters.parse(example), brand);
        const parsed = await parse(composeMime({ ...plainMail, ...rendered }));
        expect(settled(parsed.text)).toBe(settled(rendered.text));
        expect(settled(parsed.html)).toBe(settled(rendered.html));
      }
  });

  test("no line is longer than relays take, none ends in space, all end in CRLF, and everything is ASCII", () => {
    fc.assert(
      fc.property(anyText(500), anyLine(200), (body, subject) => {
        const raw = composeMime({ ...plainMail, text: body, html: body, subject: `${subject}.` });
        const whole = raw.toString("latin1");
        expect(whole).not.toMatch(/[^\t\r\n\x20-\x7e]|(?<!\r)\n|\r(?!\n)/);
        for (const line of linesOf(raw)) {
          expect(line.length).toBeLessThanOrEqual(whole.includes("7bit") ? 998 : 76);
          expect(line).not.toMatch(/[ \t]$|^From |^\./);
        }
      }),
      { numRuns: 300 },
    );
  });

  test("text of other scripts is sent as base64, and mostly plain text as something people can read", () => {
    expect(composeMime({ ...plainMail, text: "鐘が鳴る".repeat(30) }).toString()).toMatch(/text\/plain.*\r\n.*base64/);
    const readable = composeMime({ ...plainMail, text: "Grüße vom Turm" }).toString();
    expect(readable).toContain("Gr=C3=BC=C3=9Fe vom Turm");
  });

  test("what every relay leaves alone is sent as it is, and a line that one may change never is", () => {
    const sentAs = (text: string) =>
      /text\/plain.*\r\n.*Encoding: (\S+)/.exec(composeMime({ ...plainMail, text }).toString())![1];
    expect(sentAs("Hi Ada,\n\nthe bells ring.\n")).toBe("7bit");
    for (const line of [".", "From the tower", "--=_", "-- ", "tab\t", "a\rb", "\u0007", "ü", "x".repeat(999)])
      expect(sentAs(`one\n${line}\nthree`)).toBe("quoted-printable");
  });

  test("a template knows of its HTML that it can be sent as it is, exactly as the writer finds by looking at all of it", async () => {
    type P = { one: string; two: string };
    const one = (p: P) => p.one;
    const two = (p: P) => p.two;
    const shapes = [
      html<P>`<p>${one}</p>\n<p title="${two}">x</p>\n`,
      html<P>`<p>\n${one}\n${two}</p>`,
      html<P>`${one}${two}`,
      html<P>`<b>${one}${two}\n</b>${one}\n\n.`,
      html<P>`<p>F${one} ${two}`,
      html<P>`<p>\nFr${one}\n-${two}`,
      html<P>`<p>\n${two} ${one}\n</p>${accent}\n${accent}`,
      html<P>`<p>${"x".repeat(900)}${one}${"y".repeat(60)}${two}\n</p>`,
    ];
    const value = fc.oneof(
      anyText(20),
      fc.constantFrom("", "Ada", " Ada", "Ada ", ".", "-", "--", "om", "rom", "From", "x".repeat(40), "a\nb", "Zoë"),
    );
    let [asItIs, encoded] = [0, 0];
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...shapes), value, value, async (shape, first, second) => {
        const given = { one: first, two: second };
        const written = readyWriter(shape)(given, brand);
        expect(written.html).toBe(writer(shape)(given, brand));
        if (written.ready === undefined) encoded += 1;
        else {
          asItIs += 1;
          expect(written.ready).toBe(written.html.replaceAll("\n", "\r\n"));
          expect(areSafeLines(written.html)).toBe(true);
        }
        const [known, looked] = [written, { html: written.html }].map((body) =>
          composeMime({ ...plainMail, ...body })
            .toString("latin1")
            .replaceAll(/=_[0-9a-f]+_\w+/g, "boundary"),
        );
        expect(known).toBe(looked);
      }),
      { numRuns: 600 },
    );
    expect(Math.min(asItIs, encoded)).toBeGreaterThan(50);
  });

  test("examples without foreign letters or several lines go as they are, so that most mails need no second look", () => {
    for (const slug of ["dailyReminder", "welcome", "resetPassword", "verifyEmailCode"] as const) {
      const template = book.get(slug);
      const { html: whole, ready } = template.render(template.parameters.parse(template.examples[0]), brand);
      expect([slug, ready]).toEqual([slug, whole.replaceAll("\n", "\r\n")]);
    }
  });

  test("a mail stays as it was written while later ones are written", () => {
    const bodies = Array.from({ length: 200 }, (_, at) => `<p>${at} bells</p>\n`.repeat(at + 1));
    const written = bodies.map((html) => composeMime({ ...plainMail, html }));
    for (const [at, raw] of written.entries())
      expect(raw.toString()).toContain(`\r\n\r\n${bodies[at]!.replaceAll("\n", "\r\n")}\r\n--`);
  });

  test("the boundary that comes next can be guessed, and writing it into a mail adds no part", async () => {
    const boundary = () =>
      /boundary="(=_[0-9a-f]+)_(\w+)"/.exec(composeMime(plainMail).toString())!.slice(1) as [string, string];
    const [origin, count] = boundary();
    const next = `${origin}_${(Number.parseInt(count, 36) + 1).toString(36)}`;
    const forged = composeMime({ ...plainMail, html: `--${next}\nContent-Type: text/html\n\nforged\n--${next}--` });
    expect(forged.toString()).toContain(`boundary="${next}"`);
    expect(settled((await parse(forged)).html)).toContain(`--${next}`);
  });

  test("a mail that contains another mail's boundary still has two parts", async () => {
    const first = composeMime(plainMail).toString();
    const boundary = /boundary="(.+?)"/.exec(first)![1]!;
    const parsed = await parse(
      composeMime({ ...plainMail, text: `--${boundary}\r\n${first}`, html: `--${boundary}--` }),
    );
    expect(settled(parsed.html)).toBe(`--${boundary}--`);
    expect(parsed.attachments).toEqual([]);
    expect(
      new Set(Array.from({ length: 50 }, () => /boundary="(.+?)"/.exec(composeMime(plainMail).toString())![1])).size,
    ).toBe(50);
  });

  test("memory of a large mail does not leak into the next small one", async () => {
    composeMime({ ...plainMail, html: "secret ".repeat(300_000) });
    const raw = composeMime(plainMail);
    expect(raw.toString()).not.toContain("secret");
    expect(raw.length).toBeLessThan(1000);
  });
});

describe("headers of a mail", () => {
  const refusal = (change: Partial<Mail>) => {
    try {
      composeMime({ ...plainMail, ...change });
    } catch (error) {
      return errors.bad_mail.matches(error) ? "refused" : error;
    }
    return "written";
  };
  const breaks = [
    "\r\nBcc: eve@evil.example",
    "\nBcc: eve@evil.example",
    "\rBcc: x",
    "\0",
    "\u2028Bcc: x",
    "\x0b",
    "\u0085",
  ];

  test("a line break or control character is refused wherever a header could be smuggled in", () => {
    for (const harm of breaks) {
      expect(refusal({ subject: `Hello${harm}` })).toBe("refused");
      expect(refusal({ to: `ada@example.com${harm}` })).toBe("refused");
      expect(refusal({ from: { name: `Ada${harm}`, address: "a@example.com" } })).toBe("refused");
      expect(refusal({ from: { address: `a@example.com${harm}` } })).toBe("refused");
      expect(refusal({ replyTo: { name: harm, address: "a@example.com" } })).toBe("refused");
      expect(refusal({ messageId: `a@b${harm}` })).toBe("refused");
      expect(refusal({ headers: { "X-Own": `a${harm}` } })).toBe("refused");
      expect(refusal({ headers: { [`X-Own${harm}`]: "a" } })).toBe("refused");
      expect(refusal({ listUnsubscribe: { url: `https://a.example/${harm}` } })).toBe("refused");
      expect(refusal({ listUnsubscribe: { url: "https://a.example/", mailto: `mailto:a@b.example${harm}` } })).toBe(
        "refused",
      );
    }
  });

  test("an address that means several, has no domain or leaves ASCII is refused", () => {
    for (const to of [
      "a@b.example, c@d.example",
      "Ada <a@b.example>",
      "a@b@c.example",
      "a",
      "@b.example",
      "a@",
      "ü@b.example",
      "a@bücher.example",
      "a b@c.example",
      "a..b@c.example",
      `${"a".repeat(65)}@b.example`,
      `a@${"b".repeat(260)}`,
    ])
      expect([to, refusal({ to })]).toEqual([to, "refused"]);
    for (const to of ["Ada.Lovelace+bells@Example.com", "o'hara@xn--bcher-kva.example", "a@localhost"])
      expect([to, refusal({ to })]).toEqual([to, "written"]);
  });

  test("headers that the writer makes itself cannot be given a second time", () => {
    for (const name of [
      "Bcc",
      "to",
      "Content-Type",
      "content-transfer-encoding",
      "Subject",
      "DKIM-Signature",
      "List-Unsubscribe-Post",
      "a b",
      "",
    ])
      expect([name, refusal({ headers: { [name]: "x" } })]).toEqual([name, "refused"]);
    expect(refusal({ headers: { "X-Long": "x".repeat(1000) } })).toBe("refused");
  });

  test("a subject is between 1 and 250 characters of well-formed text", () => {
    for (const subject of ["", "a".repeat(251), "\ud83d", "a\ud83d b"]) expect(refusal({ subject })).toBe("refused");
    expect(refusal({ subject: "🔔".repeat(125) })).toBe("written");
  });

  test("what looks like an encoded word is not decoded, and quotes in a name stay quotes", async () => {
    const subject = "=?UTF-8?B?aGVsbG8=?= is not hello";
    const name = 'Bell, "the" \\ ringer <x>';
    const parsed = await parse(composeMime({ ...plainMail, subject, from: { name, address: "a@b.example" } }));
    expect([parsed.subject, parsed.from]).toEqual([subject, { name, address: "a@b.example" }]);
  });

  test("a mail to a list has both headers for leaving with one click, each on one line, and others have neither", () => {
    const url = `https://app.example.com/api/1/emails/unsubscribe/1.${"k".repeat(400)}`;
    const envelope = { uid: "crl_em_2", from: plainMail.from, to: plainMail.to, subject: "News", date: 0 };
    const listUnsubscribe = { url, mailto: "mailto:leave@carillon.example" };
    const list = headersIn(
      composeMime(mailFor(book.get("dailyReminder"), plainMail, { ...envelope, listUnsubscribe })),
    );
    expect(list).toContain(`List-Unsubscribe: <${url}>, <mailto:leave@carillon.example>`);
    expect(list).toContain("List-Unsubscribe-Post: List-Unsubscribe=One-Click");
    expect(list).toContain("List-Id: <reminders.carillon.example>");
    expect(list).toContain("X-Carillon-Email-Uid: crl_em_2");
    expect(list).toContain("Auto-Submitted: auto-generated");
    expect(list).toContain("Message-ID: <crl_em_2@carillon.example>");
    const code = headersIn(
      composeMime(mailFor(book.get("verifyEmailCode"), plainMail, { ...envelope, listUnsubscribe })),
    );
    expect(code.join("\n")).not.toMatch(/^List-/m);
    expect(() => mailFor(book.get("dailyReminder"), plainMail, envelope)).toThrow("needs an address for unsubscribing");
    expect(refusal({ listUnsubscribe: { url: "http://app.example.com/leave" } })).toBe("refused");
  });
});

describe("mails with attachments", () => {
  const file = {
    filename: "event.ics",
    contentType: "text/calendar; charset=utf-8; method=PUBLISH",
    content: "BEGIN:VCALENDAR\r\n",
  };

  test("a file arrives beside both parts, and the headers are those of a plain mail", async () => {
    const mail: Mail = {
      ...plainMail,
      subject: "Grüße 🔔",
      text: "Hällo",
      html: "<p>Hällo</p>",
      listUnsubscribe: { url: `https://a.example/${"u".repeat(200)}` },
    };
    const [raw, plain] = [await composeMail({ ...mail, attachments: [file] }), composeMime(mail)];
    const parsed = await parse(raw);
    expect([parsed.subject, settled(parsed.text), settled(parsed.html)]).toEqual(["Grüße 🔔", "Hällo", "<p>Hällo</p>"]);
    expect(parsed.attachments.map(({ filename, mimeType }) => [filename, mimeType])).toEqual([
      ["event.ics", "text/calendar"],
    ]);
    expect(raw.toString()).toContain(Buffer.from(file.content).toString("base64"));
    const own = (lines: string[]) => lines.filter((line) => !/^(MIME-Version|Content-| boundary)/.test(line));
    expect(own(headersIn(raw))).toEqual(own(headersIn(plain)));
    expect(raw.toString().match(/^(From|To|Subject|Date|Message-ID|MIME-Version):/gm)).toHaveLength(6);
  });

  test("an inline image is found by its cid", async () => {
    const image = {
      filename: "bell.png",
      contentType: "image/png",
      content: Buffer.from([137, 80, 78, 71]),
      cid: "bell",
    };
    const parsed = await parse(await composeMail({ ...plainMail, html: '<img src="cid:bell">', attachments: [image] }));
    expect(parsed.attachments[0]).toMatchObject({ contentId: "<bell>", mimeType: "image/png", disposition: "inline" });
  });

  test("a mail of more than ten mebibytes is refused, with and without attachments", async () => {
    const html = "x".repeat(10_485_760);
    expect(() => composeMail({ ...plainMail, html })).toThrow(/at most 10485760 are sent/);
    await expect(composeMail({ ...plainMail, html, attachments: [file] })).rejects.toSatisfy(
      errors.template_output_too_large.matches,
    );
  });

  test("too many, too large or badly named attachments are refused", async () => {
    const attach = (...attachments: Mail["attachments"] & object) => composeMail({ ...plainMail, attachments });
    await expect(attach(...Array.from({ length: 11 }, () => file))).rejects.toThrow("number of attachments");
    await expect(attach({ ...file, content: Buffer.alloc(5 * 1_048_576 + 1) })).rejects.toThrow(
      "size of the attachments",
    );
    await expect(attach({ ...file, cid: "a", content: Buffer.alloc(1_048_577) })).rejects.toThrow(
      "size of the inline images",
    );
    await expect(attach({ ...file, filename: "a\r\nBcc: x" })).rejects.toThrow("name of an attachment");
    await expect(attach({ ...file, contentType: "text/html\r\nX: y" })).rejects.toThrow("type of an attachment");
    await expect(attach({ ...file, cid: "a>\r\n" })).rejects.toThrow("cid of an attachment");
    expect(() => composeMime({ ...plainMail, attachments: [file] })).toThrow(TypeError);
  });
});
