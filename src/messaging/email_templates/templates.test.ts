import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { Config } from "../../kernel/config.ts";
import { CarillonError } from "../../kernel/errors.ts";
import { TemplateBook } from "./book.ts";
import { type Brand, brandOf } from "./brand.ts";
import { calendarFile, whenInWords } from "./calendar.ts";
import { faultsOf } from "./check.ts";
import { anyLine, anyText, brand, parse, plainMail, settled } from "./mail.fixture.ts";
import { composeMime } from "./mime.ts";
import { line } from "./parameters.ts";
import {
  book,
  checkTemplates,
  prepareMail,
  redactParameters,
  renderTemplate,
  type TemplateParameters,
} from "./service.ts";
import { settings } from "./settings.ts";
import { defineTemplate, type Template } from "./template.ts";

const reminder: TemplateParameters<"dailyReminder"> = {
  name: "Ada",
  message: "Breathe.",
  url: "https://a.example/l/1",
  unsubscribeUrl: "https://a.example/l/2?x=1&y=2",
};
const refusal = (call: () => unknown) => {
  try {
    call();
  } catch (error) {
    return error instanceof CarillonError ? { code: error.code, status: error.status, detail: error.detail } : error;
  }
  return "accepted";
};

describe("the templates that Carillon brings along", () => {
  test("have these slugs, lists and parameters", () => {
    const shape = (template: Template) => {
      const { properties = {}, required = [] } = z.toJSONSchema(template.parameters, { io: "input" });
      return Object.keys(properties).map((name) => {
        const marks = [required.includes(name) ? "" : "?", template.secret.includes(name) ? " (secret)" : ""];
        return `${name}${marks.join("")}`;
      });
    };
    expect(Object.fromEntries(book.templates.map((each) => [each.slug, [each.list, ...shape(each)]]))).toEqual({
      verifyEmailCode: [null, "code (secret)"],
      resetPassword: [null, "code (secret)", "email"],
      verifyEmailLink: [null, "name?", "url (secret)", "hours"],
      resetPasswordLink: [null, "url (secret)", "hours"],
      passwordChanged: [null, "email", "url?"],
      welcome: ["announcements", "name", "url", "unsubscribeUrl"],
      dailyReminder: ["reminders", "name", "message", "url", "unsubscribeUrl"],
      announcement: ["announcements", "headline", "paragraphs", "cta?", "image?", "unsubscribeUrl"],
      eventRegistration: [null, "name", "title", "starts_at", "ends_at", "timezone", "venue", "url"],
      sample: [null, "name", "message"],
    });
  });

  test("render all their examples within the limits, with pictures described and every link safe", () => {
    expect(() => checkTemplates(brand)).not.toThrow();
    for (const template of book.templates)
      for (const example of template.examples) {
        const { html, text } = template.render(template.parameters.parse(example), brand);
        expect(html).toMatch(/^<!doctype html>\n<html lang="en"/);
        expect(html).not.toMatch(/undefined|\[object|NaN/);
        expect(text).not.toMatch(/undefined|\[object|NaN|<\/?(p|a|br|td|span)\b|\n{4,}/);
        expect(text).toContain("\n-- \nCarillon\nYou get this mail because ");
      }
  });

  test("show every value in both parts, so that no reader misses one", () => {
    for (const template of book.templates)
      for (const example of template.examples as readonly Record<string, unknown>[]) {
        const { html, text } = template.render(template.parameters.parse(example), brand);
        const readable = html
          .replaceAll("&lt;", "<")
          .replaceAll("&gt;", ">")
          .replaceAll("&#39;", "'")
          .replaceAll("&amp;", "&")
          .replaceAll("<br>\n", "\n");
        const words = Object.values(example).flatMap((value) => (Array.isArray(value) ? value : [value]));
        for (const value of words.filter(
          (word) => typeof word === "string" && !word.includes("Europe/") && !word.includes("America/"),
        )) {
          expect(readable).toContain(value);
          expect(text).toContain(value);
        }
      }
  });

  test("a code is never in the line that locked screens show", () => {
    for (const slug of ["verifyEmailCode", "resetPassword"]) {
      const { html } = renderTemplate(slug, book.get(slug).examples[0], brand);
      const preview = /display:none[^>]*>([\s\S]*?)<\/div>/.exec(html)![1]!;
      expect(preview).toMatch(/[a-z]{4}/);
      expect(preview).not.toMatch(/482 913|907 261/);
    }
  });

  test("codes live for 25 minutes, links as long as they work, and other mails until they are given up", () => {
    const lifetime = (slug: string, index = 0) => prepareMail(slug, book.get(slug).examples[index], brand).lifetime;
    expect(["verifyEmailCode", "resetPassword"].map((slug) => lifetime(slug))).toEqual([1500, 1500]);
    expect([lifetime("verifyEmailLink"), lifetime("verifyEmailLink", 1)]).toEqual([86_400, 3600]);
    expect(lifetime("dailyReminder")).toBeUndefined();
  });

  test("any name and message come out of a sent mail as they went in", async () => {
    await fc.assert(
      fc.asyncProperty(anyLine(90), anyText(400), async (name, message) => {
        const given = { name: `${name}.`, message: `${message.replaceAll(/[^\P{Cc}\n\t]/gu, "")}.` };
        const rendered = renderTemplate("sample", given, brand);
        const parsed = await parse(composeMime({ ...plainMail, ...rendered }));
        expect(settled(parsed.text)).toContain(`Hello ${given.name}\n\n${given.message}\n\n-- \n`);
        expect(settled(parsed.html)).toBe(settled(rendered.html));
      }),
      { numRuns: 150 },
    );
  });

  test("an event's mail carries it as a calendar file that calendars can read", () => {
    const example = book.get("eventRegistration").examples[0] as TemplateParameters<"eventRegistration">;
    const [file] = prepareMail(
      "eventRegistration",
      { ...example, title: `Bells; ${"鐘".repeat(60)}, twice\\` },
      brand,
    ).attachments(1_790_000_000);
    const content = String(file!.content);
    for (const part of content.split("\r\n")) expect(Buffer.byteLength(part)).toBeLessThanOrEqual(75);
    const unfolded = content.replaceAll("\r\n ", "");
    expect(unfolded).toContain(`SUMMARY:Bells\\; ${"鐘".repeat(60)}\\, twice\\\\\r\n`);
    expect(unfolded).toContain("DTSTART:20270101T170000Z\r\nDTEND:20270101T190000Z\r\n");
    expect(unfolded).toContain("DTSTAMP:20260921T");
    expect(file).toMatchObject({ filename: "event.ics", contentType: expect.stringContaining("text/calendar") });
    const uidAt = (at: number) => calendarFile({ ...example, at }).match(/UID:\S+/)![0];
    expect(uidAt(1)).toBe(uidAt(2));
  });

  test("times are said in the event's timezone, with both days where it ends on another", () => {
    expect(whenInWords(1_798_822_800, 1_798_830_000, "Europe/Brussels")).toBe(
      "Friday, 1 January 2027, 18:00 – 20:00 (Central European Standard Time)",
    );
    expect(whenInWords(1_781_920_800, 1_781_953_200, "America/New_York")).toBe(
      "Friday, 19 June 2026, 22:00 – Saturday, 20 June 2026, 07:00 (Eastern Daylight Time)",
    );
  });
});

describe("rendering", () => {
  test("an unknown slug, a missing, a wrong and an unknown parameter are refused with their path, without their value", () => {
    expect(refusal(() => renderTemplate("nothing", {}, brand))).toMatchObject({
      code: "unknown_template",
      status: 404,
    });
    const { url: _, ...withoutUrl } = reminder;
    expect(refusal(() => renderTemplate("dailyReminder", withoutUrl, brand))).toMatchObject({
      code: "invalid_parameters",
      status: 422,
      detail: [{ path: "url" }],
    });
    expect(refusal(() => renderTemplate("dailyReminder", { ...reminder, extra: 1 }, brand))).toMatchObject({
      code: "invalid_parameters",
    });
    const nested = {
      headline: "a",
      paragraphs: ["a"],
      cta: { text: "a", url: "javascript:alert(1)" },
      unsubscribeUrl: "https://a.example",
    };
    expect(refusal(() => renderTemplate("announcement", nested, brand))).toMatchObject({
      detail: [{ path: "cta.url" }],
    });
    const late = { ...(book.get("eventRegistration").examples[0] as object), ends_at: 1, extra: 2 };
    expect(refusal(() => renderTemplate("eventRegistration", late, brand))).toMatchObject({
      code: "invalid_parameters",
    });
    expect(
      refusal(() =>
        renderTemplate(
          "eventRegistration",
          { ...(book.get("eventRegistration").examples[0] as object), ends_at: 1 },
          brand,
        ),
      ),
    ).toMatchObject({ detail: [{ path: "ends_at" }] });
    expect(JSON.stringify(refusal(() => renderTemplate("verifyEmailCode", { code: "<secret>" }, brand)))).not.toContain(
      "secret",
    );
  });

  test("the brand is on every mail, escaped, and what stands on its colour can be read", () => {
    const own = brandOf(
      new Config([]).with(
        [settings.brandName, "Bells & Co"],
        [settings.brandAccent, "#ffdd55"],
        [settings.postalAddress, "12 Bell Lane"],
      ),
    );
    const { html, text } = renderTemplate("dailyReminder", reminder, own);
    expect(html).toContain("Bells &amp; Co</td>");
    expect(html).toMatch(/bgcolor="#ffdd55"[\s\S]*color:#10161d;text-decoration:none/);
    expect(html).toMatch(/Unsubscribe<\/a>\s*<br>12 Bell Lane/);
    expect(text).toContain("Bells & Co\n");
    expect(text).toMatch(/Unsubscribe: https:\/\/a\.example\/l\/2\?x=1&y=2\n12 Bell Lane$/);
    expect(brand.onAccent).toBe("#ffffff");
    for (const bad of ["red", "#fff", "#12345g", "#123456;x:y"])
      expect(settings.brandAccent.schema.safeParse(bad).success).toBe(false);
    expect(settings.brandName.schema.safeParse("a\nb").success).toBe(false);
  });

  test("secrets are hidden from operators, and everything of a template that nobody knows any more", () => {
    expect(redactParameters("resetPassword", { code: "907 261", email: "a@b.example" })).toEqual({
      code: "[redacted]",
      email: "a@b.example",
    });
    expect(redactParameters("gone", { code: "1", name: "a" })).toEqual({ code: "[redacted]", name: "[redacted]" });
  });

  test("more than a mail may hold is not rendered", () => {
    const endless = defineTemplate({
      ...plan(),
      parameters: z.object({ value: z.string() }),
      examples: [{ value: "a" }],
      html: ({ html }) => [html`${(p) => p.value}`],
      text: ({ text }) => text`x`,
    });
    const own = new TemplateBook([endless as Template]);
    expect(refusal(() => renderTemplate("own", { value: "a".repeat(524_288) }, brand, own))).toMatchObject({
      code: "template_output_too_large",
    });
    expect(refusal(() => renderTemplate("own", { value: "鐘".repeat(175_000) }, brand, own))).toMatchObject({
      code: "template_output_too_large",
    });
    expect(renderTemplate("own", { value: "a".repeat(500_000) }, brand, own).text).toContain("x");
  });
});

const plan = () => ({
  slug: "own" as const,
  title: "Own",
  doc: "Own.",
  list: null,
  subject: "Own",
  preheader: () => "",
  reason: "of this test",
});

describe("the check at start", () => {
  const faults = (markup: string, example: { name: string } = { name: "Ada" }, own: Brand = brand) => {
    const template = defineTemplate({
      ...plan(),
      parameters: z.object({ name: line(5) }),
      examples: [example],
      html: () => [{ kind: "html", pieces: [markup] }],
      text: ({ text }) => text`Hi ${(p) => p.name}`,
    });
    return faultsOf(template as Template, own).join("; ");
  };

  test("finds pictures without description, links that are not https, and examples that do not fit", () => {
    expect(faults("<p>fine</p>")).toBe("");
    expect(faults('<img src="https://a.example/x.png" width="1" height="1">')).toContain("lacks alt");
    expect(faults('<a href="http://a.example">x</a>')).toContain("not an https address: http://a.example");
    expect(faults("x", { name: "too long" })).toContain("own, example 0: name");
    expect(faults("x".repeat(530_000))).toContain("more than 524288 bytes");
  });

  test("finds a list template whose reader could not leave, and two templates of one name", () => {
    const template = book.get("dailyReminder");
    const without = { ...template, render: () => ({ html: "<p>Stay.</p>", text: "Stay." }) };
    expect(faultsOf(without, brand)).toContain("dailyReminder, example 0: the HTML has no link for unsubscribing");
    expect(() => checkTemplates(brand, new TemplateBook([without]))).toThrow("no address for unsubscribing");
    expect(() => new TemplateBook([template, template])).toThrow("two email templates have the slug dailyReminder");
  });
});
