import { Button, Stack, Textarea, TextInput } from "@mantine/core";
import { useState } from "react";
import { useChange } from "../../api/index.ts";
import { WhatHappens } from "../../parts/channel/test-send.tsx";

export function TestPush() {
  const [token, setToken] = useState("");
  const [title, setTitle] = useState("A test");
  const [body, setBody] = useState("If you can read this, notifications work.");
  const send = useChange("post", "/api/1/admin/notifs/test_push", { refreshes: ["/api/1/admin/notifs"] });
  return (
    <Stack gap="md">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          send.mutate({ body: { push_token: token.trim(), title, body, channel_id: "default" } });
        }}
      >
        <Stack gap="sm">
          <TextInput
            label="Push token"
            placeholder="ExponentPushToken[…]"
            description="The app shows it, or the page of a person does"
            required
            value={token}
            onChange={(event) => setToken(event.currentTarget.value)}
            data-autofocus
          />
          <TextInput label="Title" required value={title} onChange={(event) => setTitle(event.currentTarget.value)} />
          <Textarea
            label="Body"
            autosize
            minRows={2}
            value={body}
            onChange={(event) => setBody(event.currentTarget.value)}
          />
          <Button type="submit" loading={send.isPending} disabled={token.trim() === "" || title === ""}>
            Send it
          </Button>
        </Stack>
      </form>
      <WhatHappens uid={send.data?.uid} />
    </Stack>
  );
}
