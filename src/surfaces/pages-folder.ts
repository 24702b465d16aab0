import { fileURLToPath } from "node:url";

/** Where the build leaves the web pages, seen from the sources and from what they are compiled to alike. */
export function pagesFolder(): string {
  return fileURLToPath(new URL("../../dist/dashboard", import.meta.url));
}
