import { MutationCache, QueryCache, QueryClient } from "@tanstack/react-query";
import { CarillonApiError } from "carillon/client";

export const SESSION_KEY = ["session"];

/** Whoever is no longer signed in is asked to sign in again, whatever told it. */
function onError(error: unknown): void {
  if (error instanceof CarillonApiError && error.status === 401) queryClient.setQueryData(SESSION_KEY, null);
}

export const queryClient: QueryClient = new QueryClient({
  queryCache: new QueryCache({ onError }),
  mutationCache: new MutationCache({ onError }),
  defaultOptions: {
    queries: {
      staleTime: 2_000,
      // What was refused will be refused again; what did not arrive may arrive the next time.
      retry: (failures, error) => failures < 2 && !(error instanceof CarillonApiError && error.status < 500),
    },
  },
});
