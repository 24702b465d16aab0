interface Named {
  readonly given_name: string | null;
  readonly family_name: string | null;
}

/** What to call somebody, if they said so. */
export function nameOf({ given_name, family_name }: Named): string | undefined {
  const name = [given_name, family_name].filter((part) => part !== null && part !== "").join(" ");
  return name === "" ? undefined : name;
}
