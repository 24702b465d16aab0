import fc from "fast-check";
import { expect, test } from "vitest";
import { attemptEntry } from "../email/entries.ts";
import { plainMail } from "../email_templates/mail.fixture.ts";
import { composeMime } from "../email_templates/service.ts";
import { EmailAddress, isEmailAddress, parseEmailAddress } from "./service.ts";

const KEPT: readonly (readonly [typed: string, kept: string])[] = [
  ["ada@example.com", "ada@example.com"],
  ["  Ada.Lovelace+Bells@Example.COM\n", "Ada.Lovelace+Bells@Example.COM"],
  ["!=/#$%&'*+-?^_`{|}~.a@example.com", "!=/#$%&'*+-?^_`{|}~.a@example.com"],
  ["ada@bücher.example", "ada@xn--bcher-kva.example"],
  ["ada@BÜCHER.example", "ada@xn--bcher-kva.example"],
  ["ada@пример.рф", "ada@xn--e1afmkfd.xn--p1ai"],
  ["ada@日本。jp", "ada@xn--wgv71a.jp"],
  ["ada@xn--e1afmkfd.xn--p1ai", "ada@xn--e1afmkfd.xn--p1ai"],
  ["ada@1.example", "ada@1.example"],
  ["ada@localhost", "ada@localhost"],
  [`${"a".repeat(64)}@example.com`, `${"a".repeat(64)}@example.com`],
];
const REFUSED = [
  "",
  "ada",
  "a@b",
  "@example.com",
  "ada@",
  "ada@@example.com",
  "a@b@example.com",
  "a b@example.com",
  "ada@exa mple.com",
  '"ada"@example.com',
  "Ada <ada@example.com>",
  "a@example.com,b@example.com",
  ".ada@example.com",
  "ada.@example.com",
  "a..b@example.com",
  "ädä@example.com",
  "ada@example..com",
  "ada@.example.com",
  "ada@example.com.",
  "ada@-example.com",
  "ada@example-.com",
  "ada@exa_mple.com",
  "ada@127.0.0.1",
  "ada@[127.0.0.1]",
  "ada@１２７.０.０.１",
  "ada@ü%41.com",
  "ada@ü/x.com",
  "ada@example.com\r\nBcc: eve@evil.example",
  "ada\u0000@example.com",
  "ada@exam\u0007ple.com",
  `${"a".repeat(65)}@example.com`,
  `ada@${"b".repeat(64)}.example`,
  `ada@${"b.".repeat(124)}example`,
  `ada@${"ü".repeat(250)}.example`,
];

const attempt = (email: string) =>
  JSON.stringify({
    aud: "send",
    uid: "crl_em_1",
    email,
    subject: "s",
    template: "sample",
    template_parameters: {},
    initially_queued_at: 1,
    retry: 0,
    last_queued_at: 1,
    failure_job: { name: "f", kwargs: {} },
    success_job: { name: "s", kwargs: {} },
  });
const isQueued = (email: string) => {
  try {
    attemptEntry.decode(Buffer.from(attempt(email)));
    return true;
  } catch {
    return false;
  }
};
const isWritten = (to: string) => {
  try {
    return composeMime({ ...plainMail, to }).includes(`To: ${to}\r\n`);
  } catch {
    return false;
  }
};

test("an address keeps its case and its unusual signs, and a domain of another script becomes ASCII", () => {
  for (const [typed, kept] of KEPT) {
    expect([typed, parseEmailAddress(typed)]).toEqual([typed, kept]);
    expect(EmailAddress.parse(typed)).toBe(kept);
  }
});

test("what no mail server would take is no address, wherever it comes from", () => {
  for (const typed of REFUSED) {
    expect([typed, parseEmailAddress(typed)]).toEqual([typed, undefined]);
    expect([typed, EmailAddress.safeParse(typed).success, isQueued(typed), isWritten(typed)]).toEqual([
      typed,
      false,
      false,
      false,
    ]);
  }
});

test("people, queue and headers agree on every address, and reading a kept one changes nothing", () => {
  const sign = fc.constantFrom(..."aZ0.!#%'+-/=?_`{|}~@ <>\"(),;:\\üд日\u0000\n");
  const text = fc.oneof(
    fc.string({ unit: sign, maxLength: 30 }),
    fc.emailAddress(),
    fc.tuple(fc.string({ unit: sign, maxLength: 8 }), fc.domain()).map(([local, domain]) => `${local}@${domain}`),
    fc.tuple(fc.constant("ada"), fc.string({ unit: "grapheme", maxLength: 12 })).map((parts) => parts.join("@")),
  );
  fc.assert(
    fc.property(text, (typed) => {
      const kept = parseEmailAddress(typed);
      const own = isEmailAddress(typed);
      expect([isQueued(typed), isWritten(typed)]).toEqual([own, own]);
      if (kept === undefined) return;
      expect(parseEmailAddress(kept)).toBe(kept);
      expect([isQueued(kept), isWritten(kept)]).toEqual([true, true]);
      expect(kept).toMatch(/^[\x21-\x7e]{3,254}$/);
    }),
    { numRuns: 500 },
  );
});
