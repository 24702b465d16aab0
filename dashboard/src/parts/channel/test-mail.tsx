import { Button, JsonInput, Select, Stack, TextInput } from "@mantine/core";
import { useState } from "react";
import { useChange, useRead } from "../../api/index.ts";
import { WhatHappens } from "./test-send.tsx";

type Parameters = Readonly<Record<string, unknown>>;

/** Sends a mail of any template to one address and shows what becomes of it. */
export function TestMail({ template: given, parameters }: { template?: string; parameters?: Parameters }) {
  const templates = useRead("/api/1/admin/email/templates", undefined, { enabled: given === undefined });
  const [email, setEmail] = useState("");
  const [slug, setSlug] = useState("sample");
  const [edited, setEdited] = useState<string>();
  const send = useChange("post", "/api/1/admin/email/messages", { refreshes: ["/api/1/admin/email"] });
  const chosen = templates.data?.templates.find((each) => each.slug === slug);
  const text = edited ?? JSON.stringify(chosen?.examples[0] ?? {}, undefined, 2);
  const template = given ?? slug;
  const template_parameters = parameters ?? parse(text);
  return (
    <Stack gap="md">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (template_parameters)
            send.mutate({
              body: {
                email: email.trim(),
                template,
                template_parameters: template_parameters as Record<string, unknown>,
              },
            });
        }}
      >
        <Stack gap="sm">
          <TextInput
            label="Email address"
            placeholder="you@example.com"
            type="email"
            required
            value={email}
            onChange={(event) => setEmail(event.currentTarget.value)}
            data-autofocus
          />
          {given === undefined && (
            <>
              <Select
                label="Template"
                description={chosen?.doc}
                allowDeselect={false}
                searchable
                data={templates.data?.templates.map(({ slug: value, title: label }) => ({ value, label })) ?? []}
                value={slug}
                onChange={(value) => {
                  setSlug(value ?? "sample");
                  setEdited(undefined);
                }}
              />
              <JsonInput
                label="Parameters"
                value={text}
                onChange={setEdited}
                error={template_parameters ? undefined : "This is not a JSON object"}
                autosize
                minRows={3}
                maxRows={14}
                formatOnBlur
              />
            </>
          )}
          <Button type="submit" loading={send.isPending} disabled={email.trim() === "" || !template_parameters}>
            Send it
          </Button>
        </Stack>
      </form>
      <WhatHappens uid={send.data?.uid} />
    </Stack>
  );
}

function parse(text: string): Parameters | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Parameters) : undefined;
  } catch {
    return undefined;
  }
}
