import { Alert, Anchor, Button, Code, Group, List, Stack, Table, Tabs, Text, Title } from "@mantine/core";
import { IconChevronLeft, IconDownload } from "@tabler/icons-react";
import { useRead } from "../../api/index.ts";
import { ErrorState, LoadingState, numberText, StateBadge, Time } from "../../parts/index.ts";
import { LinkedText } from "../linked-text.tsx";
import { MessageActions } from "../message-actions.tsx";
import { MessageStory } from "../message-story.tsx";
import { type MessageDetail, useMessage } from "../messages.ts";
import styles from "./mail.module.css";

interface MailReaderProps {
  readonly id: string;
  /** How to get back to the list, where it is not beside the mail. */
  readonly onClose: (() => void) | undefined;
}

export function MailReader({ id, onClose }: MailReaderProps) {
  const read = useMessage(id);
  return (
    <article className={styles.reader}>
      {onClose && (
        <Button
          variant="subtle"
          size="compact-sm"
          mb="sm"
          leftSection={<IconChevronLeft size={16} aria-hidden />}
          onClick={onClose}
        >
          All mails
        </Button>
      )}
      {read.error && !read.data && <ErrorState error={read.error} />}
      {read.data?.id === id ? (
        <Mail message={read.data} onDeleted={onClose ?? (() => {})} />
      ) : (
        <LoadingState lines={8} />
      )}
    </article>
  );
}

function Mail({ message, onDeleted }: { readonly message: MessageDetail; readonly onDeleted: () => void }) {
  const { mail } = message;
  return (
    <Stack gap="md">
      <div>
        <Group justify="space-between" align="flex-start" wrap="nowrap">
          <Title order={2} size="h3">
            {message.subject ?? "(no subject)"}
          </Title>
          <StateBadge state={message.status} />
        </Group>
        <Text size="sm" c="dimmed" component="div">
          {message.from} to {message.to}, <Time at={message.at} />
        </Text>
      </div>
      <MessageActions message={message} onDeleted={onDeleted} />
      {mail?.code && (
        <Alert color="bell" variant="light" py="xs">
          The code in it: <Code fz="md">{mail.code}</Code>
        </Alert>
      )}
      <Tabs defaultValue={mail?.html ? "html" : "text"} keepMounted={false}>
        <Tabs.List mb="md">
          {mail?.html && <Tabs.Tab value="html">HTML</Tabs.Tab>}
          <Tabs.Tab value="text">Text</Tabs.Tab>
          <Tabs.Tab value="headers">Headers</Tabs.Tab>
          <Tabs.Tab value="source">Source</Tabs.Tab>
          <Tabs.Tab value="story">Story</Tabs.Tab>
        </Tabs.List>
        {mail?.html && (
          <Tabs.Panel value="html">
            {/* A document of its own with a policy of its own: it has colours and pictures, and runs nothing. */}
            <iframe
              className={styles.frame}
              title={`The mail ${message.subject ?? message.id}`}
              sandbox="allow-popups allow-popups-to-escape-sandbox"
              referrerPolicy="no-referrer"
              src={`/api/1/sandbox/messages/${encodeURIComponent(message.id)}/html`}
            />
          </Tabs.Panel>
        )}
        <Tabs.Panel value="text">
          <pre className={styles.plain}>
            <LinkedText text={message.text} />
          </pre>
        </Tabs.Panel>
        <Tabs.Panel value="headers">
          <Headers headers={mail?.headers ?? []} />
        </Tabs.Panel>
        <Tabs.Panel value="source">
          <Source id={message.id} />
        </Tabs.Panel>
        <Tabs.Panel value="story">
          <MessageStory message={message} />
        </Tabs.Panel>
      </Tabs>
      {mail && <Enclosed mail={mail} />}
    </Stack>
  );
}

function Headers({ headers }: { readonly headers: readonly { readonly name: string; readonly value: string }[] }) {
  return (
    <Table aria-label="Headers" layout="fixed">
      <Table.Tbody>
        {headers.map(({ name, value }, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: headers may repeat, and never change
          <Table.Tr key={index}>
            <Table.Th w="34%">{name}</Table.Th>
            <Table.Td>{value}</Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}

function Source({ id }: { readonly id: string }) {
  const path = "/api/1/sandbox/messages/{id}/raw";
  const raw = useRead(path, { path: { id } });
  if (raw.error) return <ErrorState error={raw.error} retry={() => void raw.refetch()} />;
  if (raw.data === undefined) return <LoadingState lines={8} />;
  return (
    <Stack gap="xs" align="flex-start">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: long sources are scrolled by keyboard too */}
      <pre className={styles.plain} tabIndex={0}>
        {String(raw.data)}
      </pre>
      <Button
        component="a"
        href={path.replace("{id}", encodeURIComponent(id))}
        download={`${id}.eml`}
        variant="default"
        size="xs"
        leftSection={<IconDownload size={14} aria-hidden />}
      >
        Download .eml
      </Button>
    </Stack>
  );
}

function Enclosed({ mail: { links, attachments } }: { readonly mail: NonNullable<MessageDetail["mail"]> }) {
  const open = links.filter((link) => /^https?:\/\//.test(link));
  return (
    <>
      {open.length > 0 && (
        <div>
          <Title order={3} size="h6" mb={4}>
            Links in it
          </Title>
          <List size="sm">
            {open.map((link) => (
              <List.Item key={link}>
                <Anchor href={link} target="_blank" rel="noreferrer" fz="sm">
                  {link}
                </Anchor>
              </List.Item>
            ))}
          </List>
        </div>
      )}
      {attachments.length > 0 && (
        <div>
          <Title order={3} size="h6" mb={4}>
            Attachments
          </Title>
          <List size="sm">
            {attachments.map((file, index) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: attachments may be alike, and never change
              <List.Item key={index}>
                {file.filename ?? "inline"}, {file.content_type}, {numberText(file.size, "bytes")}
              </List.Item>
            ))}
          </List>
        </div>
      )}
    </>
  );
}
