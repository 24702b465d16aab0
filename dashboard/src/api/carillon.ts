import { type Answer, createCarillon } from "carillon/client";

export type Standing = Answer<"get", "/api/1/admin/session">;

/** Told by the server at sign-in and on every load; kept in memory only. */
let csrfToken: string | null = null;

export function setCsrfToken(token: string | null): void {
  csrfToken = token;
}

/** The one door to the server. The cookie says who calls, the token that it was this page and no other. */
export const carillon = createCarillon({
  baseUrl: location.origin,
  fetch: (url, init) => {
    const headers = new Headers(init?.headers);
    if (csrfToken !== null && init?.method !== "GET") headers.set("x-csrf-token", csrfToken);
    // The server is asked each time whether what the browser keeps is still so: it may have another past by now.
    return fetch(url, { ...init, headers, credentials: "same-origin", cache: "no-cache" });
  },
});
