import { localStorageColorSchemeManager, MantineProvider } from "@mantine/core";
import { QueryClientProvider } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { queryClient } from "../api/query-client.ts";
import { styleNonce } from "./nonce.ts";
import { NoticeBoard } from "./notice-board.tsx";
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
        <NoticeBoard />
        {children}
      </QueryClientProvider>
    </MantineProvider>
  );
}
