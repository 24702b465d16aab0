import { Group, Paper, type PaperProps, Stack, Text, Title } from "@mantine/core";
import { type ReactNode, useEffect } from "react";

interface PageHeaderProps {
  readonly title: string;
  /** One sentence: what is to be seen here. */
  readonly children?: ReactNode;
  /** Buttons and the live indicator, on the right. */
  readonly actions?: ReactNode;
}

export function PageHeader({ title, children, actions }: PageHeaderProps) {
  useEffect(() => {
    document.title = `${title} · Carillon`;
  }, [title]);
  return (
    <Group component="header" justify="space-between" align="flex-end" mb="lg" gap="sm">
      <Stack gap={2} maw={720}>
        <Title order={1} size="h2">
          {title}
        </Title>
        {children && <Text c="dimmed">{children}</Text>}
      </Stack>
      {actions && <Group gap="sm">{actions}</Group>}
    </Group>
  );
}

interface PanelProps extends Pick<PaperProps, "p" | "h"> {
  readonly title?: string;
  readonly description?: ReactNode;
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}

/** A part of a page with a heading of its own. */
export function Panel({ title, description, actions, children, p = { base: "md", sm: "lg" }, h }: PanelProps) {
  return (
    <Paper
      component="section"
      withBorder
      p={p}
      h={h}
      bg="var(--surface)"
      // A panel as high as its neighbour can put what it shows at its lower edge.
      style={{
        borderColor: "var(--hairline)",
        ...(h === undefined ? {} : { display: "flex", flexDirection: "column" }),
      }}
    >
      {(title || actions) && (
        <Group justify="space-between" align="flex-start" mb="sm" gap="sm">
          <Stack gap={2} flex="1 1 12rem" miw={0}>
            {title && (
              <Title order={2} size="h5">
                {title}
              </Title>
            )}
            {description && (
              <Text size="sm" c="dimmed">
                {description}
              </Text>
            )}
          </Stack>
          {actions && <Group gap="xs">{actions}</Group>}
        </Group>
      )}
      {children}
    </Paper>
  );
}
