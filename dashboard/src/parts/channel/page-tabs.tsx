import { Tabs } from "@mantine/core";
import { useNavigate, useSearch } from "@tanstack/react-router";
import type { ReactNode } from "react";

export interface PageTab {
  readonly name: string;
  readonly label: string;
  readonly content: () => ReactNode;
}

/** Parts of a page, one at a time; the address says which, so that it can be sent to somebody. */
export function PageTabs({ path, tabs }: { readonly path: string; readonly tabs: readonly PageTab[] }) {
  const { tab } = useSearch({ strict: false }) as { readonly tab?: string };
  const navigate = useNavigate();
  const first = tabs[0]!.name;
  const known = tabs.some(({ name }) => name === tab) ? tab : first;
  return (
    <Tabs
      value={known}
      keepMounted={false}
      onChange={(value) => void navigate({ to: path, search: { tab: value ?? first } as never, replace: true })}
    >
      <Tabs.List mb="md">
        {tabs.map(({ name, label }) => (
          <Tabs.Tab key={name} value={name}>
            {label}
          </Tabs.Tab>
        ))}
      </Tabs.List>
      {tabs.map(({ name, content: Content }) => (
        <Tabs.Panel key={name} value={name}>
          <Content />
        </Tabs.Panel>
      ))}
    </Tabs>
  );
}
