import { Button, Group, TextInput } from "@mantine/core";
import { IconSearch } from "@tabler/icons-react";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { Panel } from "../../parts/index.ts";

const TOUCH_UID = /^crl_tch_[A-Za-z0-9_-]{1,128}$/;

/** Goes to the timeline of a touch whose uid somebody has, from a log or an answer. */
export function LookUp() {
  const navigate = useNavigate();
  const [text, setText] = useState("");
  const [isWrong, setWrong] = useState(false);
  const uid = text.trim();
  return (
    <Panel>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          setWrong(!TOUCH_UID.test(uid));
          if (TOUCH_UID.test(uid)) void navigate({ to: "/touches/$uid" as never, params: { uid } as never });
        }}
      >
        <Group align="flex-end" gap="sm">
          <TextInput
            label="Look up a touch"
            description="Its uid stands in the answer that sent it, in webhooks and in logs"
            placeholder="crl_tch_…"
            value={text}
            onChange={(event) => setText(event.currentTarget.value)}
            error={isWrong ? "A uid of a touch begins with crl_tch_" : undefined}
            flex="1 1 260px"
          />
          <Button type="submit" leftSection={<IconSearch size={16} aria-hidden />}>
            Look up
          </Button>
        </Group>
      </form>
    </Panel>
  );
}
