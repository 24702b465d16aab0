import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { anyText, brand } from "./mail.fixture.ts";
import { type Html, html, writer } from "./markup.ts";
import { isMailUrl, line, webUrl } from "./parameters.ts";
import { htmlPen, textPen } from "./pen.ts";
import { defineTemplate } from "./template.ts";

type P = { value: string };
const render = (fragment: Html<P>, value: string) => writer(fragment)({ value }, brand);
const value = (p: P) => p.value;
const unescaped = (text: string) =>
  text
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&quot;", '"')
    .replaceAll("&#39;", "'")
    .replaceAll("&amp;", "&");

describe("markup", () => {
  test("no value adds a tag or leaves its attribute, and its reader sees what was given", () => {
    const fragment = html<P>`<p title="${value}">${value}</p>`;
    fc.assert(
      fc.property(
        fc.oneof(anyText(60), fc.constantFrom('"><script>', "' onload='x", "&amp;", "</p>", "<!--")),
        (given) => {
          const [, title, content] = /^<p title="([^"<>]*)">([^<>]*)<\/p>$/.exec(render(fragment, given)) ?? [];
          const settled = given.replaceAll(/\r\n?/g, "\n");
          expect([unescaped(title!), unescaped(content!)]).toEqual([settled, settled]);
        },
      ),
      { numRuns: 300 },
    );
  });

  test("an address in href or src is https or on this machine, and escaped", () => {
    const link = html<P>`<a href="${value}">x</a>`;
    expect(render(link, "https://a.example/?a=1&b=2")).toBe('<a href="https://a.example/?a=1&amp;b=2">x</a>');
    expect(render(link, "http://localhost:3000/x")).toContain("http://localhost:3000/x");
    for (const harm of [
      "javascript:alert(1)",
      "JaVaScript:alert(1)",
      "data:text/html,x",
      "http://a.example",
      "//a.example",
      "/x",
      "",
      'https://a.example/"onload=x',
      "https://a.example/ x",
      "https://user@a.example/",
      "https://a.example\\@b.example/",
      " https://a.example",
      "https://a.example/\n",
      "http://localhost.evil.example/",
      "http://127.0.0.1.evil.example",
    ]) {
      expect([harm, isMailUrl(harm)]).toEqual([harm, false]);
      expect(() => render(link, harm)).toThrow("neither https nor");
    }
    for (const good of ["http://127.0.0.1:8080", "http://[::1]/x", "https://xn--bcher-kva.example/a%20b?c#d"])
      expect([good, isMailUrl(good)]).toEqual([good, true]);
  });

  test("a slot where escaping would not help is refused when the template is declared", () => {
    const slots: readonly (() => Html<P>)[] = [
      () => html<P>`<a href=${value}>`,
      () => html<P>`<a href='${value}'>`,
      () => html<P>`<${value}>`,
      () => html<P>`<a ${value}>`,
      () => html<P>`<a href="https://a.example/${value}">`,
      () => html<P>`<p onclick="${value}">`,
      () => html<P>`<style>${value}</style>`,
      () => html<P>`<script>${value}</script>`,
      () => html<P>`<!-- ${value} -->`,
      () => html<P>`<p title="${html<P>`<b>${value}</b>`}">`,
    ];
    for (const slot of slots) expect(slot).toThrow(TypeError);
  });

  test("fixed strings are escaped like values, and nested markup is not escaped twice", () => {
    expect(render(html<P>`<p>${"a < b"}${html<P>`<b>${value}</b>`}${7}</p>`, "&")).toBe("<p>a &lt; b<b>&amp;</b>7</p>");
  });

  test("parts for a value that is there and for each of several are written with their own values", () => {
    type Q = { one?: string; many: readonly { name: string }[] };
    const pen = htmlPen<Q>();
    const write = writer(
      pen.html`${pen.given(
        (p) => p.one,
        (one) => one.html`[${(own) => own}]`,
      )}${pen.each(
        (p) => p.many,
        (item) => item.html`<i>${({ name }) => name}</i>`,
      )}`,
    );
    expect(write({ many: [] }, brand)).toBe("");
    expect(write({ one: "<", many: [{ name: "a" }, { name: ">" }] }, brand)).toBe("[&lt;]<i>a</i><i>&gt;</i>");
  });

  test("text is plain: nothing is escaped, line breaks become one kind, and indentation of the source is gone", () => {
    const pen = textPen<P>();
    const write = writer(pen.text`
      Hi ${value},

        bye`);
    expect(write({ value: "<a>\r\nb\rc" }, brand)).toBe("\nHi <a>\nb\nc,\n\nbye");
    expect(render(htmlPen<P>().lines(value), "a\r\n<b>")).toBe("a<br>\n&lt;b&gt;");
  });
});

describe("declaring a template", () => {
  const declare = (slug: string, list: "announcements" | null) =>
    defineTemplate({
      slug,
      list,
      title: "News",
      doc: "News of the tower.",
      subject: "News",
      preheader: () => "",
      reason: "you asked for it",
      parameters: z.object({ name: line(5) }),
      examples: [{ name: "Ada" }],
      html: ({ html: write }) => [write`x`],
      text: ({ text }) => text`x`,
    });

  test("a mail to a list needs an address for unsubscribing, and a slug is a name", () => {
    expect(() => declare("news", "announcements")).toThrow("unsubscribeUrl");
    expect(() => declare("1 news", null)).toThrow("not the slug");
    expect(declare("news", null).slug).toBe("news");
  });

  test("one-line parameters refuse line breaks, control characters and broken Unicode; addresses refuse what is not https", () => {
    for (const harm of ["a\nb", "a\rb", "a\0", "a\u2028b", "\ud800", ""])
      expect(line(9).safeParse(harm).success).toBe(false);
    expect(line(9).safeParse("Zoë 🔔").success).toBe(true);
    expect(webUrl().safeParse("ftp://a.example").success).toBe(false);
  });
});
