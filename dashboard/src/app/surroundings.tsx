import { localStorageColorSchemeManager, MantineProvider } from "@mantine/core";
import { Notifications } from "@mantine/notifications";
import { QueryClientProvider } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { queryClient } from "../api/query-client.ts";
import { styleNonce } from "./nonce.ts";
import { theme, variables } from "./theme.ts";

const colorScheme = localStorageColorSchemeManager({ key: "carillon-color-scheme" });

/** What every program of these pages needs around it: looks, reads, and a place to tell what happened. */
export function Surroundings({ children }: { readonly children: ReactNode }) {
  return (
    <MantineProvider
      theme={theme}
      cssVariablesResolver={variables}
      colorSchemeManager={colorScheme}
      defaultColorScheme="auto"
      getStyleNonce={() => styleNonce}
    >
      <QueryClientProvider client={queryClient}>
        <Notifications position="bottom-right" />
        {children}
      </QueryClientProvider>
    </MantineProvider>
  );
}
