/**
 * `carillon/client`: calls a Carillon from Node or a browser, with the types of its routes. It uses nothing but `fetch`.
 */
export type { Answer, Body, Call, CallOptions, Method, Path, Wish } from "./calls.ts";
export {
  type Carillon,
  type CarillonOptions,
  createCarillon,
  type SendOptions,
  type SentTouch,
  type Touch,
} from "./carillon.ts";
export { CarillonApiError } from "./error.ts";
export type { Failure, Routes } from "./schema.ts";
