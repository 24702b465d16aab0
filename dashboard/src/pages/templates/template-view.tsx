import { Code, Grid, Group, SegmentedControl, Stack, Text } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useState } from "react";
import { CarillonApiError, useRead } from "../../api/index.ts";
import { TestMail } from "../../parts/channel/test-mail.tsx";
import { TestSendButton } from "../../parts/channel/test-send.tsx";
import { Duration, ErrorState, LoadingState, Panel, StateBadge } from "../../parts/index.ts";
import { type Mail, MailFrame } from "./mail-frame.tsx";
import { ParameterFields, type Parameters } from "./parameter-fields.tsx";
import type { Template } from "./template-list.tsx";

const PATH = "/api/1/admin/email/templates/{slug}/preview";

interface Made {
  readonly mail: Mail;
  readonly parameters: string;
}

/** One template: its parameters on one side, the mail that comes of them on the other. */
export function TemplateView({ template }: { readonly template: Template }) {
  const { slug, examples } = template;
  const [example, setExample] = useState(0);
  const [values, setValues] = useState((examples[0] ?? {}) as Parameters);
  const [settled] = useDebouncedValue(values, 350);
  const parameters = JSON.stringify(settled);
  const preview = useRead(PATH, { path: { slug }, query: { parameters } });
  const faults = faultsIn(preview.error);
  // While parameters have faults, the last mail that could be made stays.
  const [made, setMade] = useState<Made>();
  if (preview.data && !preview.isPlaceholderData && made?.mail !== preview.data)
    setMade({ mail: preview.data, parameters });
  return (
    <Stack gap="md">
      <Panel
        title={template.title}
        description={template.doc}
        actions={
          <TestSendButton title="Send it">
            <TestMail template={slug} parameters={values} />
          </TestSendButton>
        }
      >
        <Group gap="sm">
          <Code fz="sm">{slug}</Code>
          <StateBadge
            state="list"
            tone={template.list === null ? "neutral" : "info"}
            label={template.list === null ? "of no list: always sent" : `list ${template.list}: people can leave`}
          />
          {template.lifetime !== null && (
            <Text size="sm" c="dimmed" component="span">
              not sent after <Duration seconds={template.lifetime} />
            </Text>
          )}
          {template.attachments.length > 0 && (
            <Text size="sm" c="dimmed" component="span">
              with {template.attachments.join(", ")}
            </Text>
          )}
        </Group>
      </Panel>
      <Grid gap="md">
        <Grid.Col span={{ base: 12, lg: 4 }}>
          <Panel title="Parameters" description="Play with them: nothing is sent or kept">
            <Stack gap="sm">
              {examples.length > 1 && (
                <SegmentedControl
                  aria-label="Example"
                  size="xs"
                  value={String(example)}
                  onChange={(value) => {
                    setExample(Number(value));
                    setValues((examples[Number(value)] ?? {}) as Parameters);
                  }}
                  data={examples.map((_, at) => ({ value: String(at), label: `Example ${at + 1}` }))}
                />
              )}
              <ParameterFields
                key={example}
                schema={template.parameters}
                secret={template.secret}
                values={values}
                faults={faults}
                onChange={setValues}
              />
            </Stack>
          </Panel>
        </Grid.Col>
        <Grid.Col span={{ base: 12, lg: 8 }}>
          {made && (!preview.error || faults.size > 0) ? (
            <MailFrame mail={made.mail} slug={slug} parameters={made.parameters} isStale={preview.error !== null} />
          ) : preview.error ? (
            <ErrorState error={preview.error} retry={() => void preview.refetch()} />
          ) : (
            <Panel title="Preview">
              <LoadingState lines={14} />
            </Panel>
          )}
        </Grid.Col>
      </Grid>
    </Stack>
  );
}

/** What the server says about each parameter. */
function faultsIn(error: Error | null): ReadonlyMap<string, string> {
  if (!(error instanceof CarillonApiError) || error.type !== "invalid_parameters") return new Map();
  const detail = error.detail as readonly { readonly path: string; readonly message: string }[] | undefined;
  return new Map(detail?.map(({ path, message }) => [path.split(".")[0]!, message]));
}
