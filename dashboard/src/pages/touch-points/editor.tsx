import { Anchor, Button, Grid, Group, JsonInput, Select, Stack, Text, TextInput } from "@mantine/core";
import { IconDeviceFloppy, IconTrash } from "@tabler/icons-react";
import { Link, useNavigate } from "@tanstack/react-router";
import { useRef, useState } from "react";
import { useChange } from "../../api/index.ts";
import { ConfirmButton, objectOf, PageHeader, Panel } from "../../parts/index.ts";
import { type Draft, declared, exampleOf, type Point, STRATEGIES, type Strategy } from "./draft.ts";
import { MessagesPanel } from "./messages-panel.tsx";
import { SendButton } from "./send.tsx";
import { UnsavedChanges } from "./unsaved-changes.tsx";

const REFRESHES = ["/api/1/admin/touch_points"];
const SLUG = /^[A-Za-z][A-Za-z_]*[A-Za-z]$/;

interface EditorProps {
  /** What is saved; undefined for one that is being made. */
  readonly point: Point | undefined;
  readonly initial: Draft;
}

export function Editor({ point, initial }: EditorProps) {
  const navigate = useNavigate();
  const [draft, setDraft] = useState(initial);
  const [saved, setSaved] = useState(initial);
  const [etag, setEtag] = useState(point?.messages_etag);
  const schema = objectOf(draft.schema);
  const isChanged = JSON.stringify(draft) !== JSON.stringify(saved);
  const isFit = schema !== undefined && SLUG.test(draft.slug);
  // Where one goes after making or removing it, nothing is left to save.
  const isDone = useRef(false);
  const goTo = (to: string) => {
    isDone.current = true;
    void navigate({ to });
  };
  const change = (changes: Partial<Draft>) => setDraft((now) => ({ ...now, ...changes }));
  const create = useChange("post", "/api/1/admin/touch_points", {
    done: ({ event_slug }) => `${event_slug} is made`,
    refreshes: REFRESHES,
    onDone: ({ uid }) => goTo(`/touch-points/${uid}`),
  });
  const save = useChange("patch", "/api/1/admin/touch_points/{uid}", {
    done: "Saved: from now on people are told in these words",
    refreshes: REFRESHES,
    onDone: ({ messages_etag }) => {
      setEtag(messages_etag);
      setSaved(draft);
    },
  });
  const remove = useChange("delete", "/api/1/admin/touch_points/{uid}", {
    done: `${saved.slug} is removed`,
    // Not what is shown here: it is gone, and asking for it again would only fail.
    refreshes: ["/api/1/admin/touch_points/search"],
    onDone: () => goTo("/touch-points"),
  });
  const submit = () => {
    const fields = {
      event_slug: draft.slug,
      event_schema: schema!,
      selection_strategy: draft.strategy,
      messages: declared(draft.messages),
    };
    if (!point) create.mutate({ body: fields });
    else
      save.mutate({
        path: { uid: point.uid },
        body: { ...fields, ...(etag === undefined ? {} : { precondition: { messages_etag: etag } }) },
      });
  };
  return (
    <>
      <UnsavedChanges areThere={() => isChanged && !isDone.current} />
      <PageHeader
        title={point ? saved.slug : "New touch point"}
        actions={
          <>
            {point && <SendButton slug={saved.slug} point={point} isChanged={isChanged} />}
            <Button
              leftSection={<IconDeviceFloppy size={16} aria-hidden />}
              disabled={!isFit || !isChanged}
              loading={create.isPending || save.isPending}
              onClick={submit}
            >
              {point ? "Save" : "Make it"}
            </Button>
          </>
        }
      >
        <Anchor component={Link} to="/touch-points">
          All touch points
        </Anchor>
      </PageHeader>
      <Stack gap="md">
        <Panel title="Event">
          <Grid gap="md">
            <Grid.Col span={{ base: 12, md: 5 }}>
              <Stack gap="md">
                <TextInput
                  label="Name"
                  description="What applications call it: letters and underscores"
                  placeholder="class_starts"
                  value={draft.slug}
                  onChange={(event) => change({ slug: event.currentTarget.value })}
                  error={draft.slug === "" || SLUG.test(draft.slug) ? undefined : "Letters and underscores only"}
                />
                <Select
                  label="Which message somebody gets next"
                  description={STRATEGIES[draft.strategy].doc}
                  inputWrapperOrder={["label", "input", "description", "error"]}
                  allowDeselect={false}
                  value={draft.strategy}
                  onChange={(value) => change({ strategy: (value ?? draft.strategy) as Strategy })}
                  data={Object.entries(STRATEGIES).map(([value, { label }]) => ({ value, label }))}
                />
                {point && draft.strategy !== saved.strategy && (
                  <Text size="sm" c="var(--tone-warn)">
                    A new strategy begins anew with everybody.
                  </Text>
                )}
              </Stack>
            </Grid.Col>
            <Grid.Col span={{ base: 12, md: 7 }}>
              <JsonInput
                label="Parameters"
                description="A JSON Schema of an object; every property has a type and an example"
                value={draft.schema}
                onChange={(text) => change({ schema: text })}
                error={schema ? undefined : "This is not a JSON object"}
                autosize
                minRows={6}
                maxRows={14}
                formatOnBlur
              />
            </Grid.Col>
          </Grid>
        </Panel>
        <MessagesPanel
          messages={draft.messages}
          example={exampleOf(schema)}
          onChange={(messages) => change({ messages })}
        />
        {point && (
          <Group justify="flex-end">
            <ConfirmButton
              question="Touches of it that still wait fail; those that arrived stay in the history."
              confirm="Remove it"
              leftSection={<IconTrash size={14} aria-hidden />}
              loading={remove.isPending}
              onConfirm={() => remove.mutate({ path: { uid: point.uid } })}
            >
              Remove this touch point
            </ConfirmButton>
          </Group>
        )}
      </Stack>
    </>
  );
}
