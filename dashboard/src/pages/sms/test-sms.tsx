import { Button, Group, Stack, Text, Textarea, TextInput } from "@mantine/core";
import { useState } from "react";
import { useChange } from "../../api/index.ts";
import { WhatHappens } from "../../parts/channel/test-send.tsx";
import { numberText } from "../../parts/index.ts";

export function TestSms() {
  const [phone, setPhone] = useState("");
  const [body, setBody] = useState("If you can read this, texts arrive.");
  const send = useChange("post", "/api/1/admin/sms/test_sms", { refreshes: ["/api/1/admin/sms"] });
  const count = useChange("post", "/api/1/admin/sms/estimate");
  const cost = count.data;
  return (
    <Stack gap="md">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          send.mutate({ body: { phone_number: phone.trim(), body } });
        }}
      >
        <Stack gap="sm">
          <TextInput
            label="Phone number"
            placeholder="+12025550100"
            description="With its plus sign and country"
            required
            value={phone}
            onChange={(event) => setPhone(event.currentTarget.value)}
            data-autofocus
          />
          <Textarea
            label="Text"
            required
            autosize
            minRows={2}
            value={body}
            onChange={(event) => {
              setBody(event.currentTarget.value);
              count.reset();
            }}
          />
          {cost && (
            <Text size="sm" c="dimmed" role="status">
              {numberText(cost.segments)} {cost.segments === 1 ? "piece" : "pieces"} in {cost.encoding},{" "}
              {numberText(cost.units)} places
              {cost.unusual.length > 0 && `; twice as wide because of ${cost.unusual.join(" ")}`}
            </Text>
          )}
          <Group grow>
            <Button
              variant="default"
              disabled={body === ""}
              loading={count.isPending}
              onClick={() => count.mutate({ body: { body, recipients: 1 } })}
            >
              Count the pieces
            </Button>
            <Button type="submit" loading={send.isPending} disabled={phone.trim() === "" || body === ""}>
              Send it
            </Button>
          </Group>
        </Stack>
      </form>
      <WhatHappens uid={send.data?.uid} />
    </Stack>
  );
}
