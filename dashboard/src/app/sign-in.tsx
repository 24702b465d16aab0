import { Alert, Center, Code, Loader, Paper, Stack, Text, Title } from "@mantine/core";
import { IconAlertCircle } from "@tabler/icons-react";
import { useMutation } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useEffect, useRef } from "react";
import { CarillonApiError } from "../api/index.ts";
import { signIn, useSession } from "../api/session.ts";
import { Bell } from "./brand.tsx";

/** Where a sign-in link leads. Its secret stands behind the `#` and is taken out of the address at once. */
export function SignIn() {
  const navigate = useNavigate();
  const session = useSession();
  const asked = useRef(false);
  const exchange = useMutation({
    mutationFn: signIn,
    onSuccess: () => navigate({ to: "/", replace: true }),
  });
  const { mutate } = exchange;
  useEffect(() => {
    const secret = location.hash.slice(1);
    if (asked.current || secret === "") return;
    asked.current = true;
    history.replaceState(null, "", location.pathname);
    mutate(secret);
  }, [mutate]);
  const isIn = Boolean(session.data) && !asked.current;
  useEffect(() => {
    if (isIn) void navigate({ to: "/", replace: true });
  }, [isIn, navigate]);
  return <SignInCard error={exchange.error} isBusy={exchange.isPending || session.isPending} />;
}

/** Before anybody knows whether somebody is signed in. */
export function Welcome() {
  return (
    <Center mih="100dvh" component="main">
      <Loader role="status" aria-label="Opening the dashboard" />
    </Center>
  );
}

export function SignInCard({ error, isBusy }: { readonly error?: Error | null; readonly isBusy?: boolean }) {
  return (
    <Center mih="100dvh" p="md" component="main">
      <Paper withBorder p="xl" maw={460} w="100%" bg="var(--surface)">
        <Stack gap="md" align="flex-start">
          <Bell size={48} />
          <Title order={1} size="h2">
            Sign in to Carillon
          </Title>
          {error && (
            <Alert color="red" icon={<IconAlertCircle />} title={error.message} w="100%" role="alert">
              {error instanceof CarillonApiError ? error.hint : "Is the server running? Reload the page to try again."}
            </Alert>
          )}
          {isBusy ? (
            <Loader role="status" aria-label="Signing in" />
          ) : (
            <>
              <Text>You need a link that works once. Print one where Carillon runs:</Text>
              <Code block w="100%" fz="sm">
                npx carillon admin login
              </Code>
              <Text c="dimmed" size="sm">
                Open it in this browser. <Code>npm start</Code> prints such a link too.
              </Text>
            </>
          )}
        </Stack>
      </Paper>
    </Center>
  );
}
