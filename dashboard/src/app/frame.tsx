import { ActionIcon, Burger, Group, Tooltip, useComputedColorScheme, useMantineColorScheme } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconInbox, IconLogout, IconMoon, IconSun } from "@tabler/icons-react";
import { Link, Outlet, useRouterState } from "@tanstack/react-router";
import { Suspense, useEffect } from "react";
import { useRead } from "../api/reads.ts";
import { signOut, useSession } from "../api/session.ts";
import { ErrorState, LoadingState } from "../parts/states.tsx";
import { Bell } from "./brand.tsx";
import styles from "./frame.module.css";
import { NAVIGATION } from "./navigation.ts";
import { SignInCard, Welcome } from "./sign-in.tsx";

/** What stands around every page: the menu, which is a drawer on phones, and who is signed in. */
export function Frame() {
  const session = useSession();
  const [isOpen, drawer] = useDisclosure(false);
  const path = useRouterState({ select: ({ location }) => location.pathname });
  // biome-ignore lint/correctness/useExhaustiveDependencies: going somewhere closes the drawer
  useEffect(() => drawer.close(), [path]);
  if (session.isPending) return <Welcome />;
  if (!session.data) return <SignInCard error={session.error} />;
  return (
    <div className={styles.frame}>
      <a className="skip-link" href="#content">
        Skip to the page
      </a>
      <header className={styles.header}>
        <Burger opened={isOpen} onClick={drawer.toggle} size="sm" aria-label="Menu" aria-expanded={isOpen} />
        <Brand />
      </header>
      <nav className={styles.navbar} aria-label="Main" data-away={!isOpen}>
        <Group justify="space-between" px="lg" pt="lg" pb="xs">
          <Brand />
          <Burger opened onClick={drawer.close} size="sm" hiddenFrom="md" aria-label="Close the menu" />
        </Group>
        <div className={styles.places}>
          <Menu path={path} />
          <InboxLink />
        </div>
        <Group gap="xs" px="md" py="sm">
          <ColorSchemeButton />
          <Tooltip label="Sign out">
            <ActionIcon variant="subtle" color="gray" size="lg" aria-label="Sign out" onClick={() => void signOut()}>
              <IconLogout size={19} />
            </ActionIcon>
          </Tooltip>
        </Group>
      </nav>
      <main id="content" tabIndex={-1} className={styles.main}>
        <Suspense fallback={<LoadingState />}>
          <Outlet />
        </Suspense>
      </main>
    </div>
  );
}

function Brand() {
  return (
    <Link to="/" className={styles.brand}>
      <Bell />
      Carillon
    </Link>
  );
}

function Menu({ path }: { readonly path: string }) {
  const here = path.replace(/^\/admin/, "") || "/";
  return NAVIGATION.map(({ label, places }) => (
    <section key={label} aria-label={label}>
      <div className={styles.group}>{label}</div>
      <ul className={styles.list}>
        {places.map((place) => {
          const isHere = place.path === "/" ? here === "/" : here === place.path || here.startsWith(`${place.path}/`);
          return (
            <li key={place.path}>
              <Link to={place.path} className={styles.place} aria-current={isHere ? "page" : undefined}>
                <place.icon size={18} stroke={1.7} aria-hidden />
                {place.label}
              </Link>
            </li>
          );
        })}
      </ul>
    </section>
  ));
}

/** Where simulated providers stand in, what they were given is a step away. It is a program of its own. */
function InboxLink() {
  const sandbox = useRead("/api/1/admin/sandbox");
  if (!sandbox.data?.can_open) return null;
  return (
    <section aria-label="Sandbox">
      <div className={styles.group}>Sandbox</div>
      <a href="/sandbox" className={styles.place}>
        <IconInbox size={18} stroke={1.7} aria-hidden />
        Inbox
      </a>
    </section>
  );
}

function ColorSchemeButton() {
  const { setColorScheme } = useMantineColorScheme();
  const isDark = useComputedColorScheme("light") === "dark";
  const label = isDark ? "Light colours" : "Dark colours";
  return (
    <Tooltip label={label}>
      <ActionIcon
        variant="subtle"
        color="gray"
        size="lg"
        aria-label={label}
        onClick={() => setColorScheme(isDark ? "light" : "dark")}
      >
        {isDark ? <IconSun size={19} /> : <IconMoon size={19} />}
      </ActionIcon>
    </Tooltip>
  );
}

/** A page whose script could not be loaded, or that broke while it was drawn. */
export function BrokenPage({ error }: { readonly error: Error }) {
  return <ErrorState error={error} retry={() => location.reload()} />;
}
