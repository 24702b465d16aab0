import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { Clock } from "../kernel/clock.ts";
import type { Log } from "../kernel/log.ts";
import { extraOf, type Failure } from "./failure.ts";
import { type Exchange, exchange, isRecord, jsonOf, textOrNull } from "./http-exchange.ts";
import {
  MAX_PUSH_MESSAGES,
  MAX_PUSH_RECEIPTS,
  type PushMessage,
  type PushProvider,
  type PushReceipt,
  type PushReceiptIdentifier,
  type PushRequestIdentifier,
  type PushTicket,
  type ReceiptOutcome,
  requireAtMost,
  type TicketOutcome,
} from "./push.ts";

export interface ExpoOptions {
  /** Of the account, where there are several. */
  readonly name?: string;
  readonly baseUrl: string;
  /** Needed where the Expo project has enhanced push security. */
  readonly accessToken?: string;
  /** Seconds. */
  readonly timeout: number;
  readonly userAgent: string;
  readonly clock: Clock;
  readonly log: Log;
}

type RequestFailure = Failure<PushRequestIdentifier>;
type Parsed = { readonly ok: true; readonly data: unknown } | (RequestFailure & { readonly body?: unknown });

/** The names that Expo gives to messages which a device maker's network refused. */
const RECEIPT_ERRORS: ReadonlySet<string> = new Set<PushReceiptIdentifier>([
  "DeviceNotRegistered",
  "MessageTooBig",
  "MessageRateExceeded",
  "MismatchSenderId",
  "InvalidCredentials",
]);
const MIXED_PROJECTS = "PUSH_TOO_MANY_EXPERIENCE_IDS";
const compress = promisify(gzip);

/** The push service of Expo. What an answer means for the whole request is decided first, then item by item. */
export class ExpoPush implements PushProvider {
  readonly name: string;
  readonly #options: ExpoOptions;

  constructor(options: ExpoOptions) {
    this.name = options.name ?? "expo";
    this.#options = options;
  }

  async send(messages: readonly PushMessage[]): Promise<TicketOutcome[]> {
    requireAtMost(MAX_PUSH_MESSAGES, messages, "messages");
    if (messages.length === 0) return [];
    const answer = await this.#sendTogether(messages);
    if (answer.ok) return answer.tickets;
    const projects = projectsIn(answer.body);
    if (!projects) return messages.map(() => ({ ...answer.failure, ticket: null }));
    return this.#sendByProject(messages, projects, answer.failure);
  }

  async receipts(ids: readonly string[]): Promise<Map<string, ReceiptOutcome>> {
    const asked = [...new Set(ids)];
    requireAtMost(MAX_PUSH_RECEIPTS, asked, "ticket ids");
    if (asked.length === 0) return new Map();
    const parsed = await this.#post("/--/api/v2/push/getReceipts", { ids: asked });
    const answer = parsed.ok && !isRecord(parsed.data) ? internal("data is not an object") : parsed;
    if (!answer.ok) {
      const { body: _, ...failure } = answer as RequestFailure & { body?: unknown };
      return new Map(asked.map((id) => [id, { ...failure, receipt: null }]));
    }
    const found = answer.data as Readonly<Record<string, unknown>>;
    const foreign = Object.keys(found).length - asked.filter((id) => Object.hasOwn(found, id)).length;
    if (foreign > 0) this.#options.log.warn({ foreign }, "Expo sent receipts that nobody asked for; they are ignored");
    return new Map(asked.map((id) => [id, Object.hasOwn(found, id) ? receiptOutcome(found[id]) : notReady()]));
  }

  /**
   * Expo refuses a request whose tokens belong to several of its projects, and tells which belongs to which. Sending
   * each group by itself keeps one foreign token from failing ninety-nine others.
   */
  async #sendByProject(
    messages: readonly PushMessage[],
    projects: readonly ReadonlySet<string>[],
    refusal: RequestFailure,
  ): Promise<TicketOutcome[]> {
    const outcomes: TicketOutcome[] = messages.map(() => ({ ...refusal, ticket: null }));
    const groups = projects.map((tokens) => messages.flatMap(({ to }, at) => (tokens.has(to) ? [at] : [])));
    await Promise.all(
      groups
        .filter((places) => places.length > 0)
        .map(async (places) => {
          const answer = await this.#sendTogether(places.map((at) => messages[at]!));
          for (const [index, at] of places.entries())
            outcomes[at] = answer.ok ? answer.tickets[index]! : { ...answer.failure, ticket: null };
        }),
    );
    return outcomes;
  }

  async #sendTogether(
    messages: readonly PushMessage[],
  ): Promise<
    | { readonly ok: true; readonly tickets: TicketOutcome[] }
    | { readonly ok: false; readonly failure: RequestFailure; readonly body?: unknown }
  > {
    const answer = await this.#post(
      "/--/api/v2/push/send",
      messages.map(({ to, title, body, channelId }) => ({ to, title, body, channelId: channelId ?? undefined })),
    );
    if (!answer.ok) {
      const { body, ...failure } = answer;
      return { ok: false, failure, body };
    }
    if (!Array.isArray(answer.data)) return { ok: false, failure: internal("data is not an array") };
    if (answer.data.length !== messages.length)
      return { ok: false, failure: internal(`${answer.data.length} tickets for ${messages.length} messages`) };
    return { ok: true, tickets: answer.data.map(ticketOutcome) };
  }

  async #post(path: string, content: unknown): Promise<Parsed> {
    const { baseUrl, accessToken, timeout, userAgent, clock } = this.#options;
    const request: Exchange = {
      method: "POST",
      url: `${baseUrl.replace(/\/+$/, "")}${path}`,
      headers: {
        accept: "application/json",
        "accept-encoding": "gzip, deflate",
        "content-encoding": "gzip",
        "content-type": "application/json",
        "user-agent": userAgent,
        ...(accessToken ? { authorization: `Bearer ${accessToken}` } : {}),
      },
      body: await compress(JSON.stringify(content)),
      timeout,
    };
    const answer = await exchange(request, { clock });
    if (!answer.ok) {
      const untaken = answer.unreached ? { untaken: true as const } : {};
      return { ...failed("NetworkError", true, answer.error), backoff: true, outage: true, ...untaken };
    }
    const { status } = answer;
    const body = jsonOf(answer.body);
    if (status === 429) return { ...failed("ClientError429", true, "hard"), backoff: true };
    if (status >= 500) return { ...failed("ServerError", true, String(status)), backoff: true, outage: true };
    if (status === 401 || status === 403)
      return { ...failed("ClientErrorOther", false, String(status)), credentials: true };
    if (status >= 300) return { ...failed("ClientErrorOther", false, String(status)), body };
    if (body === undefined) return internal("the answer is not JSON");
    if (!isRecord(body)) return internal("the answer is not an object");
    if (Array.isArray(body.errors) ? body.errors.length > 0 : body.errors !== undefined && body.errors !== null)
      return internal({ errors: body.errors });
    return { ok: true, data: body.data };
  }
}

function failed<I extends string>(identifier: I, retryable: boolean, extra: string | null): Failure<I> {
  return { ok: false, identifier, subidentifier: null, retryable, extra };
}

const internal = (what: unknown) => failed("InternalError", false, extraOf(what));
const notReady = (): ReceiptOutcome => ({ ...failed("NotReadyYet", true, null), receipt: null });

function ticketOutcome(item: unknown): TicketOutcome {
  if (!isRecord(item)) return { ...internal(item), ticket: null };
  const { status, id } = item;
  const seen = { id: textOrNull(id), message: textOrNull(item.message), details: item.details ?? null };
  if (status === "ok" && typeof id === "string" && id !== "") return { ok: true, ticket: { ...seen, status, id } };
  if (status !== "error") return { ...internal(item), ticket: null };
  const ticket: PushTicket = { ...seen, status };
  const name = errorNameOf(item);
  if (name === "DeviceNotRegistered") return { ...failed(name, false, null), ticket };
  return { ...internal(name ?? item), ticket };
}

function receiptOutcome(item: unknown): ReceiptOutcome {
  if (!isRecord(item)) return { ...internal(item), receipt: null };
  const { status } = item;
  const seen = { message: textOrNull(item.message), details: item.details ?? null };
  if (status === "ok") return { ok: true, receipt: { ...seen, status } };
  if (status !== "error") return { ...internal(item), receipt: null };
  const receipt: PushReceipt = { ...seen, status };
  const name = errorNameOf(item);
  if (name !== undefined && RECEIPT_ERRORS.has(name))
    return { ...failed(name as PushReceiptIdentifier, false, null), receipt };
  return { ...internal(name ?? item), receipt };
}

function errorNameOf({ details }: Readonly<Record<string, unknown>>): string | undefined {
  return isRecord(details) && typeof details.error === "string" ? details.error : undefined;
}

/** The tokens of each project, where the refusal is about mixed projects. */
function projectsIn(body: unknown): readonly ReadonlySet<string>[] | undefined {
  const errors = isRecord(body) && Array.isArray(body.errors) ? body.errors : [];
  const mixed = errors.find((error) => isRecord(error) && error.code === MIXED_PROJECTS);
  if (!isRecord(mixed) || !isRecord(mixed.details)) return undefined;
  return Object.values(mixed.details).map((tokens) => new Set(Array.isArray(tokens) ? tokens.map(String) : []));
}
