import type { Agenda } from "./agenda.ts";

/** A whole webhook call gets this long, in real time: what is measured is a wire, not a simulated delay. */
const PATIENCE_MS = 15_000;

/** Posts to a webhook and answers its status; null when there was no answer. Redirects are not followed. */
export async function callWebhook(
  agenda: Agenda,
  url: string,
  body: string,
  headers: Readonly<Record<string, string>>,
): Promise<number | null> {
  try {
    const response = await fetch(url, {
      method: "POST",
      body,
      headers: { ...headers },
      redirect: "manual",
      signal: AbortSignal.any([agenda.signal, AbortSignal.timeout(PATIENCE_MS)]),
    });
    await response.arrayBuffer();
    return response.status;
  } catch {
    return null;
  }
}
