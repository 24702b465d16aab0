import { Alert, Button, Center, Skeleton, Stack, Text, ThemeIcon } from "@mantine/core";
import { IconAlertCircle, IconInbox } from "@tabler/icons-react";
import { CarillonApiError } from "carillon/client";
import type { ReactNode } from "react";

interface EmptyStateProps {
  readonly title: string;
  /** What would be here, or how to get something here. */
  readonly children?: ReactNode;
  readonly icon?: ReactNode;
}

export function EmptyState({ title, children, icon = <IconInbox size={22} stroke={1.6} /> }: EmptyStateProps) {
  return (
    <Center py="xl" px="md">
      <Stack align="center" gap={6} maw={460}>
        <ThemeIcon variant="light" color="gray" size={44} radius="xl" aria-hidden>
          {icon}
        </ThemeIcon>
        <Text fw={600}>{title}</Text>
        {children && (
          <Text c="dimmed" size="sm" ta="center" component="div">
            {children}
          </Text>
        )}
      </Stack>
    </Center>
  );
}

/** Holds the place of what comes, line by line, so that nothing jumps when it is there. */
export function LoadingState({ lines = 5, height = 18 }: { readonly lines?: number; readonly height?: number }) {
  return (
    <Stack gap="sm" role="status" aria-label="Loading" py="xs">
      {Array.from({ length: lines }, (_, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: lines are all alike
        <Skeleton key={index} h={height} w={`${95 - ((index * 17) % 40)}%`} />
      ))}
    </Stack>
  );
}

/** What went wrong, what to do about it, and what to quote when asking somebody. */
export function ErrorState({ error, retry }: { readonly error: Error; readonly retry?: () => void }) {
  const told = error instanceof CarillonApiError ? error : undefined;
  const hint = told ? told.hint : "Is the server running, and is this computer online?";
  return (
    <Alert
      color="red"
      icon={<IconAlertCircle />}
      title={told ? told.message : "The server did not answer"}
      role="alert"
    >
      <Stack gap="xs" align="flex-start">
        {hint && <Text size="sm">{hint}</Text>}
        {told?.requestId && (
          <Text size="xs" c="dimmed">
            {told.type}, request {told.requestId}
          </Text>
        )}
        {retry && (
          <Button variant="default" size="xs" onClick={retry}>
            Try again
          </Button>
        )}
      </Stack>
    </Alert>
  );
}
