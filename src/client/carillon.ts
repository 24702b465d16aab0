import {
  type Answer,
  type AnyWish,
  answerOf,
  type Body,
  type Call,
  type CallOptions,
  type Method,
  requestOf,
} from "./calls.ts";
import { errorOf } from "./error.ts";
import { secondsUntilRepeat, wait } from "./patience.ts";

export type Touch = Body<"post", "/api/1/admin/touches">;
export type SentTouch = Answer<"post", "/api/1/admin/touches">["touches"][number];

export interface CarillonOptions {
  /** Where Carillon is: `https://bells.example.com`. */
  readonly baseUrl: string;
  /** An admin token on your server, an access token in an app; or what gives one that still works, before every call. */
  readonly token?: string | (() => string | undefined | Promise<string | undefined>);
  /** Instead of the platform's own. */
  readonly fetch?: typeof globalThis.fetch;
  /** How often a call is repeated that Carillon asks to be repeated. Never, if you do not say. */
  readonly retries?: number;
  /** How the time until a repetition passes, for tests. */
  readonly wait?: (seconds: number, signal?: AbortSignal) => Promise<void>;
}

export interface SendOptions extends CallOptions {
  /**
   * Whoever repeats a request with the same key within a week gets the first answer, and nobody is told twice. Name it
   * for what you send, such as `order-17-shipped`. Without one a new key is made, which makes `retries` safe.
   */
  readonly idempotencyKey?: string;
}

/** Carillon as an application calls it. Every call answers what the route answers, or throws a `CarillonApiError`. */
export interface Carillon {
  readonly get: Call<"get">;
  readonly post: Call<"post">;
  readonly put: Call<"put">;
  readonly patch: Call<"patch">;
  readonly delete: Call<"delete">;
  /** Tells one person about an event; answers a touch for each channel. */
  sendTouch(touch: Touch, options?: SendOptions): Promise<readonly SentTouch[]>;
  /** Tells up to 100 people: all of them, or none if it throws. */
  sendTouches(touches: readonly Touch[], options?: SendOptions): Promise<readonly SentTouch[]>;
  /** The same Carillon with another token, such as that of a person. */
  as(token: NonNullable<CarillonOptions["token"]>): Carillon;
}

/** A client for one Carillon. It keeps no state, so one is enough, and several do no harm. */
export function createCarillon(options: CarillonOptions): Carillon {
  const call =
    (method: Method) =>
    async (path: string, wish: AnyWish = {}): Promise<unknown> =>
      send(options, method, path, wish);
  const post = call("post") as Call<"post">;
  return {
    get: call("get") as Call<"get">,
    post,
    put: call("put") as Call<"put">,
    patch: call("patch") as Call<"patch">,
    delete: call("delete") as Call<"delete">,
    sendTouch: async (touch, sending) =>
      (await post("/api/1/admin/touches", { body: touch, ...withKey(sending) })).touches,
    sendTouches: async (touches, sending) =>
      (await post("/api/1/admin/touches/batch", { body: { touches }, ...withKey(sending) })).touches,
    as: (token) => createCarillon({ ...options, token }),
  };
}

function withKey({ idempotencyKey = crypto.randomUUID(), headers, ...options }: SendOptions = {}): CallOptions {
  return { ...options, headers: { ...headers, "idempotency-key": idempotencyKey } };
}

async function send(options: CarillonOptions, method: Method, path: string, wish: AnyWish): Promise<unknown> {
  const { baseUrl, token, fetch = globalThis.fetch, retries = 0, wait: pass = wait } = options;
  const request = requestOf(baseUrl, method, path, wish);
  const hasOwn = request.init.headers.has("authorization");
  for (let left = wish.retries ?? retries; ; left--) {
    const credential = typeof token === "function" ? await token() : token;
    if (credential !== undefined && !hasOwn) request.init.headers.set("authorization", `Bearer ${credential}`);
    const response = await fetch(request.url, request.init);
    if (response.ok) return answerOf(response);
    const error = await errorOf(response);
    const seconds = left > 0 ? secondsUntilRepeat(error, request) : undefined;
    if (seconds === undefined) throw error;
    await pass(seconds, wish.signal);
  }
}
