/** Which methods each address takes, so that a wrong method can be told from a wrong address. */
export class MethodTable {
  readonly #entries: { readonly matches: RegExp; readonly method: string }[] = [];

  add(url: string, method: string | readonly string[]): void {
    const source = url
      .split("/")
      .map((part) =>
        part.startsWith(":") ? "[^/]+" : part === "*" ? ".*" : part.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"),
      )
      .join("/");
    const matches = new RegExp(`^${source}$`);
    for (const each of [method].flat()) this.#entries.push({ matches, method: each });
  }

  at(url: string): readonly string[] {
    const path = url.split("?", 1)[0]!;
    return [...new Set(this.#entries.filter(({ matches }) => matches.test(path)).map(({ method }) => method))].sort();
  }
}
