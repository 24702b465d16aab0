import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import { setServerTime } from "../app/clock.ts";
import { carillon, type Standing, setCsrfToken } from "./carillon.ts";
import { queryClient, SESSION_KEY } from "./query-client.ts";

function welcome(standing: Standing): Standing {
  setCsrfToken(standing.csrf_token);
  setServerTime(standing.now);
  return standing;
}

/** Who is signed in here; null for nobody. */
export function useSession(): UseQueryResult<Standing | null> {
  return useQuery({
    queryKey: SESSION_KEY,
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: async () => {
      const standing = welcome(await carillon.get("/api/1/admin/session"));
      return standing.session === null ? null : standing;
    },
  });
}

/** The timezone that days of statistics are counted in. */
export function useStatisticsTimezone(): string {
  return useSession().data?.statistics_timezone ?? "UTC";
}

export async function signIn(token: string): Promise<void> {
  queryClient.setQueryData(SESSION_KEY, welcome(await carillon.post("/api/1/admin/session", { body: { token } })));
}

export async function signOut(): Promise<void> {
  await carillon.delete("/api/1/admin/session");
  queryClient.setQueryData(SESSION_KEY, null);
  queryClient.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== SESSION_KEY[0] });
}
