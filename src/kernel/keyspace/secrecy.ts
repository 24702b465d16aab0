import type { Catalogue } from "./catalogue.ts";

/**
 * How a key or channel may be shown to people: by its name, or by its pattern alone when the name or the value holds a
 * secret or an address. Whatever prints names of keys prints them through here.
 */
export function shownName(catalogue: Catalogue, name: string): string {
  const match = catalogue.match(name) ?? catalogue.matchChannel(name);
  return match?.entry.secret ? match.entry.pattern : name;
}

/** The same for a sentence that may have names of keys in it. */
export function shownSentence(catalogue: Catalogue, sentence: string): string {
  return sentence.replace(/[^\s"'`,;()[\]]+/g, (word) => {
    const bare = word.replace(/[.:!?]+$/, "");
    const shown = shownName(catalogue, bare);
    return shown === bare ? word : shown + word.slice(bare.length);
  });
}
