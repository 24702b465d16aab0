import { Button, Group, TextInput } from "@mantine/core";
import { IconSearch } from "@tabler/icons-react";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { Panel } from "../../parts/index.ts";
import { LinkView } from "./link-view.tsx";

const CODE = /([A-Za-z0-9_-]{1,255})\/?$/;

/** The code of what somebody pasted: a code, or a whole address that ends with one. */
const codeOf = (text: string) => CODE.exec(text.trim())?.[1];

/** One link by its code; the address of the page says which, so that it can be sent to somebody. */
export function LookUp() {
  const search = useSearch({ strict: false }) as { readonly code?: string | number };
  const shown = search.code === undefined ? undefined : String(search.code);
  const navigate = useNavigate();
  const [text, setText] = useState(shown ?? "");
  return (
    <Panel>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          const code = codeOf(text);
          void navigate({ to: "/links", search: (code === undefined ? {} : { code }) as never });
        }}
      >
        <Group align="flex-end" gap="sm">
          <TextInput
            label="Look up a link"
            description="By its code or its whole address"
            placeholder="4Wq9"
            value={text}
            onChange={(event) => setText(event.currentTarget.value)}
            flex="1 1 260px"
          />
          <Button type="submit" leftSection={<IconSearch size={16} aria-hidden />}>
            Look up
          </Button>
        </Group>
      </form>
      {shown !== undefined && <LinkView key={shown} code={shown} />}
    </Panel>
  );
}
