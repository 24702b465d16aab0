import { Config } from "../../src/kernel/config.ts";
import { book, brandOf, composeMime, mailFor, renderTemplate } from "../../src/messaging/email_templates/service.ts";
import { addressOf, parametersOf, TEMPLATE } from "./email.ts";
import { type ChannelRow, goal, type Size } from "./stage.ts";

const brand = brandOf(new Config([]));
const template = book.get(TEMPLATE);

/** From parameters to HTML and text, and on to the bytes that a provider gets. `npm run bench -- templates` has the peers. */
export async function measureRendering(size: Size): Promise<readonly ChannelRow[]> {
  const leaving = (index: number) => `https://app.example.com/api/1/emails/unsubscribe/1.${index}`;
  const render = (index: number) =>
    renderTemplate(TEMPLATE, { ...parametersOf(index), unsubscribeUrl: leaving(index) }, brand);
  const write = (index: number) =>
    composeMime(
      mailFor(template, render(index), {
        uid: `crl_em_${index}`,
        from: { name: "Carillon", address: "bells@carillon.example" },
        to: addressOf(index),
        subject: "Your daily reminder",
        date: 1_790_000_000 + index,
        listUnsubscribe: { url: leaving(index) },
      }),
    );
  const rates = (work: (index: number) => { readonly length: number } | { readonly html: string }) =>
    Array.from({ length: size.rounds + 1 }, () => {
      const started = performance.now();
      for (let index = 0; index < size.messages; index++) work(index);
      return size.messages / ((performance.now() - started) / 1000);
    }).slice(1);
  return [
    goal("email: check parameters and render", "mails/s", rates(render), 20_000),
    goal("email: check parameters, render, write MIME", "mails/s", rates(write)),
  ];
}
