import { Button, Group } from "@mantine/core";
import { type ReactNode, useState } from "react";

/** Pages of a list that goes on from a key: `cursor` is what to ask with, the pager leads forward and back. */
export function useKeyPages<Key>(): {
  readonly cursor: Key | undefined;
  readonly reset: () => void;
  readonly pager: (next: Key | null | undefined) => ReactNode;
} {
  const [path, setPath] = useState<readonly Key[]>([]);
  return {
    cursor: path.at(-1),
    reset: () => setPath([]),
    pager: (next) =>
      path.length === 0 && (next === null || next === undefined) ? null : (
        <Group justify="flex-end" mt="sm" gap="xs">
          <Button
            variant="default"
            size="xs"
            disabled={path.length === 0}
            onClick={() => setPath((keys) => keys.slice(0, -1))}
          >
            Back
          </Button>
          <Button
            variant="default"
            size="xs"
            disabled={next === null || next === undefined}
            onClick={() => setPath((keys) => (next === null || next === undefined ? keys : [...keys, next]))}
          >
            More
          </Button>
        </Group>
      ),
  };
}
