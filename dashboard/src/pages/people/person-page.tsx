import { Anchor, Group, SimpleGrid, Stack, Tabs } from "@mantine/core";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { type Answer, CALM, LIVE, useRead } from "../../api/index.ts";
import { useNow } from "../../app/clock.ts";
import { ErrorState, LoadingState, Num, nameOf, PageHeader, StateBadge, StatTile, Time } from "../../parts/index.ts";
import { Addresses } from "./addresses.tsx";
import { ContactLog, SettingsLog, TimezoneLog } from "./logs.tsx";
import { NextReminders } from "./next-reminders.tsx";
import { ReminderSettings } from "./reminder-settings.tsx";
import { Touches } from "./touches.tsx";
import { Trail } from "./trail.tsx";

const TABS = [
  { name: "reach", label: "Addresses", Content: Addresses },
  { name: "reminders", label: "Reminders", Content: Reminders },
  { name: "touches", label: "Touches", Content: Touches },
  { name: "trail", label: "Debug trail", Content: Trail },
  { name: "logs", label: "Logs", Content: Logs },
] as const;

/** Everything about one person. */
export function Page() {
  const { sub } = useParams({ strict: false }) as { readonly sub: string };
  const { tab } = useSearch({ strict: false }) as { readonly tab?: string };
  const navigate = useNavigate();
  const person = useRead("/api/1/admin/users/{sub}", { path: { sub } });
  const known = TABS.find(({ name }) => name === tab)?.name ?? "reach";
  // While somebody else's page loads, nobody is shown under their address.
  const data = person.data?.sub === sub ? person.data : undefined;
  if (!data)
    return (
      <>
        <PageHeader title="Person">
          <Anchor component={Link} to="/people">
            All people
          </Anchor>
        </PageHeader>
        {person.error ? (
          <ErrorState error={person.error} retry={() => void person.refetch()} />
        ) : (
          <LoadingState lines={8} />
        )}
      </>
    );
  return (
    <>
      <PageHeader title={nameOf(data) ?? data.sub}>
        <Group component="span" gap="xs">
          <span>{data.sub}</span>
          {data.role !== "user" && <StateBadge state={data.role} tone="info" />}
        </Group>
      </PageHeader>
      <Stack gap="md" key={sub}>
        <Tiles person={data} />
        <Tabs
          value={known}
          keepMounted={false}
          onChange={(value) =>
            void navigate({ to: `/people/${encodeURIComponent(sub)}`, search: { tab: value } as never, replace: true })
          }
        >
          <Tabs.List mb="md">
            {TABS.map(({ name, label }) => (
              <Tabs.Tab key={name} value={name}>
                {label}
              </Tabs.Tab>
            ))}
          </Tabs.List>
          {TABS.map(({ name, Content }) => (
            <Tabs.Panel key={name} value={name}>
              <Content sub={sub} />
            </Tabs.Panel>
          ))}
        </Tabs>
      </Stack>
    </>
  );
}

function Tiles({ person }: { readonly person: Answer<"get", "/api/1/admin/users/{sub}"> }) {
  const path = { sub: person.sub };
  const methods = useRead("/api/1/admin/users/{sub}/contact_methods", { path }, { every: LIVE });
  const coming = useRead("/api/1/admin/users/{sub}/daily_reminders/next", { path }, { every: CALM });
  const now = useNow(60);
  const addresses = methods.data ? [...methods.data.emails, ...methods.data.phones] : [];
  const held = addresses.filter(({ suppressed }) => suppressed).length;
  const count = addresses.length + (methods.data?.push_tokens.length ?? 0);
  const [next] = coming.data?.items ?? [];
  const zone = person.timezone ?? "America/Los_Angeles";
  return (
    <SimpleGrid cols={{ base: 2, sm: 4 }} spacing={{ base: "xs", sm: "md" }}>
      <StatTile
        label="Addresses"
        value={methods.data && <Num value={count} />}
        note={held > 0 ? `${held} suppressed` : "none suppressed"}
        tone={held > 0 ? "warn" : "neutral"}
      />
      <StatTile
        label="Next reminder"
        value={coming.data && (next ? <Time at={next.assigned_at ?? next.earliest_at} /> : "none")}
        note={next ? `${next.weekday}, ${next.earliest_local} to ${next.latest_local} there` : "none in 14 days"}
      />
      <StatTile label="Their clock" value={localTime(zone, now)} note={zone.replaceAll("_", " ")} />
      <StatTile
        label="Role"
        value={person.role}
        note={
          <>
            here since <Time at={person.created_at} />
          </>
        }
      />
    </SimpleGrid>
  );
}

function localTime(timeZone: string, now: number): string {
  try {
    return new Intl.DateTimeFormat(undefined, { timeZone, timeStyle: "short" }).format(now * 1000);
  } catch {
    return "unknown";
  }
}

function Reminders({ sub }: { readonly sub: string }) {
  return (
    <Stack gap="md">
      <ReminderSettings sub={sub} />
      <NextReminders sub={sub} />
    </Stack>
  );
}

function Logs({ sub }: { readonly sub: string }) {
  return (
    <Stack gap="md">
      <ContactLog sub={sub} />
      <SettingsLog sub={sub} />
      <TimezoneLog sub={sub} />
    </Stack>
  );
}
