import type { Routes } from "./schema.ts";

export type Method = keyof Routes;
/** The paths that can be called with a method. */
export type Path<M extends Method> = keyof Routes[M] & string;

/** What a route answers: `Answer<"get", "/api/1/users/me">`. */
export type Answer<M extends Method, P extends Path<M>> = Routes[M][P] extends { answer: infer A } ? A : never;
/** What a route takes as its body: `Body<"post", "/api/1/admin/touches">`. */
export type Body<M extends Method, P extends Path<M>> = Routes[M][P] extends { body?: infer B } ? B : never;

export interface CallOptions {
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  /** Instead of the client's own `retries`. */
  readonly retries?: number;
}

/** What a call needs besides its path: exactly what the route takes, and how to call it. */
export type Wish<M extends Method, P extends Path<M>> = Omit<Routes[M][P], "answer"> & CallOptions;

/** A route that requires nothing may be called with its path alone. */
export type Wishes<M extends Method, P extends Path<M>> =
  Record<never, never> extends Omit<Routes[M][P], "answer"> ? [wish?: Wish<M, P>] : [wish: Wish<M, P>];

export type Call<M extends Method> = <P extends Path<M>>(path: P, ...wish: Wishes<M, P>) => Promise<Answer<M, P>>;

/** A wish as the code that sends it sees it. */
export interface AnyWish extends CallOptions {
  readonly path?: Readonly<Record<string, unknown>>;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
}

export interface Sent {
  readonly url: string;
  readonly init: RequestInit & { readonly headers: Headers };
}

/** The request that a call makes. */
export function requestOf(baseUrl: string, method: Method, path: string, wish: AnyWish): Sent {
  const headers = new Headers({ accept: "application/json", ...wish.headers });
  const init: RequestInit & { headers: Headers } = { method: method.toUpperCase(), headers };
  if (wish.signal) init.signal = wish.signal;
  if (wish.body !== undefined) {
    const { body, type } = bodyOf(wish.body);
    init.body = body;
    if (type !== undefined && !headers.has("content-type")) headers.set("content-type", type);
  }
  return { url: baseUrl.replace(/\/+$/, "") + filled(path, wish.path ?? {}) + searchOf(wish.query ?? {}), init };
}

/** `/users/{sub}` with its parameters. */
function filled(path: string, parameters: Readonly<Record<string, unknown>>): string {
  return path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const value = parameters[name];
    const text = value === undefined || value === null ? "" : String(value);
    // Such a part would change which address is called: an empty one ends the path early, dots climb up in it.
    if (/^\.{0,2}$/.test(text)) throw new TypeError(`${path} needs a value for {${name}}, and "${text}" is none.`);
    return encodeURIComponent(text);
  });
}

function searchOf(query: Readonly<Record<string, unknown>>): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    for (const each of Array.isArray(value) ? value : [value])
      if (each !== undefined && each !== null) search.append(name, String(each));
  const text = search.toString();
  return text === "" ? "" : `?${text}`;
}

/** Forms and bytes as they are, everything else as JSON. A form writes its own type, with its boundary. */
function bodyOf(body: unknown): { body: NonNullable<RequestInit["body"]>; type: string | undefined } {
  if (body instanceof FormData) return { body, type: undefined };
  if (body instanceof Blob || body instanceof ArrayBuffer || typeof body === "string")
    return { body, type: "application/octet-stream" };
  return { body: JSON.stringify(body), type: "application/json" };
}

/** What a success holds: JSON as a value, anything else as text, nothing as undefined. */
export async function answerOf(response: Response): Promise<unknown> {
  const text = await response.text();
  if (text === "") return undefined;
  return /\bjson\b/.test(response.headers.get("content-type") ?? "") ? JSON.parse(text) : text;
}
