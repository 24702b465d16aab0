import { filesIn, importsOf, read } from "./repository.ts";

/**
 * The floors from the ground up; imports may only point down or stay on their floor. The client stands below all of them:
 * it runs elsewhere, so it has nothing of the house but the generated types of its routes.
 */
export const FLOORS = [
  "client",
  "kernel",
  "mechanisms",
  "providers",
  "sandbox",
  "jobs",
  "domain.ts",
  "rooms",
  "domains.ts",
  "surfaces",
] as const;
export type Floor = (typeof FLOORS)[number];

/** Folders of src that are floors by themselves; every other folder holds rooms. */
const FLOOR_FOLDERS = new Set(["client", "kernel", "mechanisms", "providers", "sandbox", "jobs", "surfaces"]);

export function floorOf(file: string): Floor | undefined {
  const [source, first, ...rest] = file.split("/");
  if (source !== "src" || first === undefined) return undefined;
  if (rest.length === 0) return first === "domain.ts" || first === "domains.ts" ? first : "surfaces";
  return FLOOR_FOLDERS.has(first) ? (first as Floor) : "rooms";
}

/** `src/people/users` for any file inside that room. */
export function roomOf(file: string): string | undefined {
  return floorOf(file) === "rooms" ? file.split("/").slice(0, 3).join("/") : undefined;
}

export function rooms(): string[] {
  return [...new Set(filesIn("src").flatMap((file) => (file.split("/").length > 3 ? (roomOf(file) ?? []) : [])))];
}

/** The rooms in the order in which `src/domains.ts` lists them. */
export function roomsInOrder(): string[] {
  const file = "src/domains.ts";
  const text = read(file);
  const list = text.slice(text.search(/export const domains\b/));
  const imported = importsOf(file).flatMap(({ specifier, target }) => {
    const room = target === undefined ? undefined : roomOf(target);
    if (room === undefined) return [];
    const names =
      new RegExp(`import\\s*\\{([^}]*)\\}\\s*from\\s*"${specifier.replaceAll(".", "\\.")}"`).exec(text)?.[1] ?? "";
    const places = names
      .split(",")
      .map((name) =>
        name
          .replace(/^\s*type\s.*/, "")
          .replace(/.*\bas\b/, "")
          .trim(),
      )
      .filter(Boolean)
      .map((name) => list.search(new RegExp(`\\b${name}\\b`)))
      .filter((place) => place >= 0);
    return places.length === 0 ? [] : [{ room, place: Math.min(...places) }];
  });
  return imported.sort((a, b) => a.place - b.place).map(({ room }) => room);
}
