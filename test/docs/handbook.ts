import { filesIn, filesInRoot, read } from "../house/repository.ts";

/** Pages that are printed from declarations and checked elsewhere. */
const GENERATED = new Set(["docs/keys.md", "docs/configuration.md", "docs/errors.md"]);

/** The pages that people write. */
export const pages = [...filesInRoot(), ...filesIn("docs")].filter(
  (file) => file.endsWith(".md") && !GENERATED.has(file),
);

export interface Fragment {
  readonly page: string;
  readonly text: string;
}

const BLOCK = /^```(\w*)\n([\s\S]*?)^```$/gm;

/** Blocks of code; without a language, all of them. */
export function blocks(language?: string): readonly Fragment[] {
  return pages.flatMap((page) =>
    [...read(page).matchAll(BLOCK)]
      .filter(([, spoken]) => language === undefined || spoken === language)
      .map(([, , text]) => ({ page, text: text! })),
  );
}

/** What stands in backticks within sentences and tables. */
export function spans(): readonly Fragment[] {
  return pages.flatMap((page) =>
    [
      ...read(page)
        .replace(BLOCK, "")
        .matchAll(/`([^`\n]+)`/g),
    ].map(([, text]) => ({ page, text: text! })),
  );
}

/** Lines that a reader may type: spans, and blocks of a shell without the output that they show. */
export function typed(): readonly Fragment[] {
  const lines = (fragment: Fragment, form: RegExp) =>
    fragment.text
      .replaceAll(/\\\n\s*/g, " ")
      .split("\n")
      .flatMap((line) => form.exec(line)?.[1] ?? [])
      .map((text) => ({ page: fragment.page, text }));
  return [
    ...spans(),
    ...blocks("sh").flatMap((block) => lines(block, /^([^#].*)$/)),
    ...blocks("console").flatMap((block) => lines(block, /^\$ (.*)$/)),
  ];
}
