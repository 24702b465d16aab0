import PostalMime from "postal-mime";

/** A mail taken apart, as a person's mail program would. */
export interface ReadMail {
  readonly from: string | null;
  readonly to: readonly string[];
  readonly subject: string | null;
  readonly html: string | null;
  readonly text: string | null;
  readonly headers: readonly { readonly name: string; readonly value: string }[];
  readonly attachments: readonly {
    readonly filename: string | null;
    readonly content_type: string;
    readonly size: number;
    readonly inline: boolean;
  }[];
  readonly links: readonly string[];
  /** The first number of 6 to 8 digits in the text: most likely the code to type in. */
  readonly code: string | null;
  /** Where a one-click unsubscription is posted to, if the mail offers one. */
  readonly one_click_url: string | null;
}

export async function readMail(raw: Buffer): Promise<ReadMail> {
  const mail = await PostalMime.parse(raw);
  const header = (name: string) => mail.headers.find(({ key }) => key === name)?.value;
  const text = mail.text ?? null;
  const html = mail.html ?? null;
  const offers = /List-Unsubscribe=One-Click/i.test(header("list-unsubscribe-post") ?? "");
  return {
    from: addressOf(mail.from),
    to: (mail.to ?? []).flatMap((each) => addressOf(each) ?? []),
    subject: mail.subject ?? null,
    html,
    text,
    headers: mail.headers.map(({ originalKey, value }) => ({ name: originalKey, value })),
    attachments: mail.attachments.map(({ filename, mimeType, content, disposition }) => ({
      filename,
      content_type: mimeType,
      size: typeof content === "string" ? Buffer.byteLength(content) : content.byteLength,
      inline: disposition === "inline",
    })),
    links: linksIn(html, text),
    code: /(?<![\d#&/=.-])\d{6,8}(?![\d/-])/.exec(text ?? plain(html ?? ""))?.[0] ?? null,
    one_click_url: offers ? (/<(https?:[^>]+)>/.exec(header("list-unsubscribe") ?? "")?.[1] ?? null) : null,
  };
}

function addressOf(mailbox: { address?: string } | undefined): string | null {
  return mailbox?.address ?? null;
}

function linksIn(html: string | null, text: string | null): string[] {
  const marked = [...(html ?? "").matchAll(/href\s*=\s*["'](https?:[^"']+)["']/gi)].map(([, url]) =>
    url!.replaceAll("&amp;", "&"),
  );
  const written = [...(text ?? "").matchAll(/https?:\/\/[^\s<>"')\]]+/g)].map(([url]) => url);
  return [...new Set([...marked, ...written])];
}

function plain(html: string): string {
  return html.replaceAll(/<style[\s\S]*?<\/style>/gi, " ").replaceAll(/<[^>]+>/g, " ");
}
