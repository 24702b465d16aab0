import { Anchor, Center, Stack, Text, Title } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { Bell } from "./brand.tsx";

export function Lost() {
  return (
    <Center mih="100dvh" p="md" component="main">
      <Stack align="center" gap="sm">
        <Bell size={48} />
        <Title order={1} size="h2">
          There is no such page
        </Title>
        <Text c="dimmed">The address may be old, or was not copied whole.</Text>
        <Anchor component={Link} to="/">
          Go to the overview
        </Anchor>
      </Stack>
    </Center>
  );
}
