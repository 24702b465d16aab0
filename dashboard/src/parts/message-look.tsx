import { Group, Text } from "@mantine/core";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { type Answer, carillon } from "../api/index.ts";
import { numberText } from "./figures.tsx";
import styles from "./message-look.module.css";

type Rendered = Answer<"post", "/api/1/admin/touch_points/preview">;

/** What a message of a touch point looks like to who gets it. */
export function MessageLook({ rendered }: { readonly rendered: Rendered }) {
  const { title, body, template, template_parameters, subject } = rendered;
  if (template !== undefined)
    return <MailLook template={template} subject={subject ?? ""} parameters={template_parameters ?? {}} />;
  if (title !== undefined)
    return (
      <div className={styles.screen}>
        <div className={styles.push}>
          <img src="/favicon.svg" width={34} height={34} alt="" />
          <span className={styles.title}>{title}</span>
          <p className={styles.words}>{body}</p>
        </div>
      </div>
    );
  return <TextLook body={body ?? ""} />;
}

function TextLook({ body }: { readonly body: string }) {
  const estimate = useQuery({
    queryKey: ["sms estimate", body],
    queryFn: ({ signal }) => carillon.post("/api/1/admin/sms/estimate", { body: { body }, signal }),
    enabled: body !== "",
    placeholderData: keepPreviousData,
    staleTime: Number.POSITIVE_INFINITY,
  });
  return (
    <>
      <div className={styles.screen}>
        <div className={styles.bubble}>{body}</div>
      </div>
      {estimate.data && (
        <Group gap="xs" fz="xs" c="dimmed">
          <span>
            {numberText(estimate.data.segments)} {estimate.data.segments === 1 ? "piece" : "pieces"},{" "}
            {estimate.data.encoding}
          </span>
          {estimate.data.unusual.length > 0 && <span>because of {estimate.data.unusual.join(" ")}</span>}
        </Group>
      )}
    </>
  );
}

interface MailLookProps {
  readonly template: string;
  readonly subject: string;
  readonly parameters: Readonly<Record<string, unknown>>;
}

function MailLook({ template, subject, parameters }: MailLookProps) {
  const mail = useQuery({
    queryKey: ["mail preview", template, subject, parameters],
    queryFn: ({ signal }) =>
      carillon.post("/api/1/admin/email/templates/{slug}/preview", {
        path: { slug: template },
        body: { template_parameters: { ...parameters }, subject },
        signal,
      }),
    placeholderData: keepPreviousData,
    staleTime: 60_000,
  });
  const query = `as=html&parameters=${encodeURIComponent(JSON.stringify(parameters))}`;
  return (
    <>
      <Text size="sm">
        <Text span c="dimmed" size="sm">
          Subject:{" "}
        </Text>
        {subject}
      </Text>
      {mail.error && (
        <Text size="sm" c="var(--tone-bad)" role="status">
          {mail.error.message}
        </Text>
      )}
      {mail.isSuccess && !mail.isPlaceholderData && (
        // A document of its own: its policy lets it have colours and pictures, and no scripts, forms or address.
        <iframe
          className={styles.frame}
          title={`The mail ${subject}`}
          sandbox=""
          referrerPolicy="no-referrer"
          src={`/api/1/admin/email/templates/${encodeURIComponent(template)}/preview?${query}`}
        />
      )}
    </>
  );
}
