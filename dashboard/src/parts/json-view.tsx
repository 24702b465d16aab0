import { Code, CopyButton, Group, Stack, Tooltip, UnstyledButton } from "@mantine/core";

/** Any value as text, never as HTML. Texts that are JSON are laid out. */
export function JsonView({ value, maxHeight = 360 }: { readonly value: unknown; readonly maxHeight?: number }) {
  const text = textOf(value);
  return (
    <Stack gap={4}>
      <Code
        block
        mah={maxHeight}
        tabIndex={0}
        role="region"
        aria-label="JSON"
        style={{ overflow: "auto", whiteSpace: "pre-wrap" }}
      >
        {text}
      </Code>
      <Group justify="flex-end">
        <CopyButton value={text}>
          {({ copied, copy }) => (
            <Tooltip label="Copy to the clipboard">
              <UnstyledButton fz="xs" c="dimmed" onClick={copy}>
                {copied ? "Copied" : "Copy"}
              </UnstyledButton>
            </Tooltip>
          )}
        </CopyButton>
      </Group>
    </Stack>
  );
}

function textOf(value: unknown): string {
  if (typeof value !== "string") return JSON.stringify(value, undefined, 2) ?? "";
  try {
    return JSON.stringify(JSON.parse(value), undefined, 2);
  } catch {
    return value;
  }
}

/** What somebody typed, if it is a JSON object. */
export function objectOf(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}
