import { Anchor } from "@mantine/core";
import { Link } from "@tanstack/react-router";

interface Named {
  readonly given_name: string | null;
  readonly family_name: string | null;
}

/** What to call somebody, if they said so. */
export function nameOf({ given_name, family_name }: Named): string | undefined {
  const name = [given_name, family_name].filter((part) => part !== null && part !== "").join(" ");
  return name === "" ? undefined : name;
}

interface PersonLinkProps {
  readonly person: Named & { readonly sub: string };
  readonly weight?: number;
}

/** Leads to a person by their name, or by their sub if they have none; pointing at the name shows the sub. */
export function PersonLink({ person, weight }: PersonLinkProps) {
  const name = nameOf(person);
  return (
    <Anchor
      component={Link}
      to={`/people/${encodeURIComponent(person.sub)}`}
      size="sm"
      title={name && person.sub}
      {...(weight === undefined ? {} : { fw: weight })}
    >
      {name ?? person.sub}
    </Anchor>
  );
}
