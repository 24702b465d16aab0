import { Alert, Group, List, SegmentedControl, Stack, Table, Text } from "@mantine/core";
import { IconBulb } from "@tabler/icons-react";
import { useState } from "react";
import type { Answer } from "../../api/index.ts";
import { numberText, Panel } from "../../parts/index.ts";
import styles from "./mail-frame.module.css";

export type Mail = Answer<"get", "/api/1/admin/email/templates/{slug}/preview">;

interface MailFrameProps {
  readonly mail: Mail;
  readonly slug: string;
  /** Those it was made with, as JSON. */
  readonly parameters: string;
  /** The parameters of this moment are not fit for a mail: this is the last one that was. */
  readonly isStale: boolean;
}

/** A mail as its readers see it, on a desk or on a phone, in light or dark colours. */
export function MailFrame({ mail, slug, parameters, isStale }: MailFrameProps) {
  const [part, setPart] = useState("html");
  const [width, setWidth] = useState("desktop");
  const [colors, setColors] = useState("light");
  return (
    <Panel title={mail.subject} description={`Subject; the whole mail has ${numberText(mail.bytes, "bytes")}`}>
      <Stack gap="sm">
        <Group justify="space-between" gap="sm">
          <SegmentedControl
            aria-label="Part of the mail"
            value={part}
            onChange={setPart}
            data={[
              { value: "html", label: "HTML" },
              { value: "text", label: "Text" },
              { value: "headers", label: "Headers" },
            ]}
          />
          <Group gap="sm">
            <SegmentedControl
              aria-label="Colours of the reader"
              value={colors}
              onChange={setColors}
              disabled={part !== "html"}
              data={[
                { value: "light", label: "Light" },
                { value: "dark", label: "Dark" },
              ]}
            />
            <SegmentedControl
              aria-label="Width"
              value={width}
              onChange={setWidth}
              disabled={part === "headers"}
              data={[
                { value: "desktop", label: "Desktop" },
                { value: "phone", label: "Phone" },
              ]}
            />
          </Group>
        </Group>
        {isStale && (
          <Text size="sm" c="dimmed" role="status">
            The last mail that could be made; the parameters beside it have faults.
          </Text>
        )}
        {part === "html" && (
          <div className={styles.screen} data-width={width} data-colors={colors}>
            {/* A document of its own: its policy lets it have colours and pictures, and no scripts, forms or address. */}
            <iframe
              className={styles.frame}
              title={`The mail ${mail.subject}`}
              sandbox=""
              referrerPolicy="no-referrer"
              src={`/api/1/admin/email/templates/${encodeURIComponent(slug)}/preview?as=html&parameters=${encodeURIComponent(parameters)}`}
            />
          </div>
        )}
        {part === "text" && (
          <pre className={styles.text} data-width={width}>
            {mail.text}
          </pre>
        )}
        {part === "headers" && (
          <Table aria-label="Headers" layout="fixed">
            <Table.Tbody>
              {mail.headers.map(({ name, value }) => (
                <Table.Tr key={`${name} ${value}`}>
                  <Table.Th w="35%">{name}</Table.Th>
                  <Table.Td>{value}</Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        )}
        {mail.warnings.length > 0 && (
          <Alert color="var(--tone-warn)" icon={<IconBulb />} title="Could be better">
            <List size="sm">
              {mail.warnings.map((warning) => (
                <List.Item key={warning}>{warning}</List.Item>
              ))}
            </List>
          </Alert>
        )}
      </Stack>
    </Panel>
  );
}
