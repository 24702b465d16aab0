import {
  keepPreviousData,
  type QueryKey,
  type UseMutationResult,
  type UseQueryResult,
  useMutation,
  useQuery,
  useQueryClient,
} from "@tanstack/react-query";
import type { Answer, Method, Path, Wish } from "carillon/client";
import { useCallback } from "react";
import { tell } from "../app/notice-board.tsx";
import { carillon } from "./carillon.ts";

/** Seconds between two looks at what changes all the time, and at what changes now and then. */
export const LIVE = 3;
export const CALM = 30;

export interface ReadOptions {
  /** Asked again every so many seconds while somebody looks; never, if it is not said. */
  readonly every?: number;
  readonly enabled?: boolean;
}

export type Read<T> = UseQueryResult<T, Error>;

type AnyCall = (path: string, wish?: object) => Promise<unknown>;

export const keyOf = (path: string, wish?: object): QueryKey => (wish === undefined ? [path] : [path, wish]);

/** Reads a route: `useRead("/api/1/admin/jobs/queues", undefined, { every: LIVE })`. */
export function useRead<P extends Path<"get">>(
  path: P,
  wish?: Omit<Wish<"get", P>, "headers" | "signal" | "retries">,
  { every, enabled = true }: ReadOptions = {},
): Read<Answer<"get", P>> {
  return useQuery<Answer<"get", P>, Error>({
    queryKey: keyOf(path, wish),
    queryFn: ({ signal }) => (carillon.get as AnyCall)(path, { ...wish, signal }) as Promise<Answer<"get", P>>,
    // A table that is asked for its next page keeps the last one until the next is there.
    placeholderData: keepPreviousData as never,
    enabled,
    ...(every === undefined ? {} : { refetchInterval: every * 1000 }),
  });
}

/** Asks again all reads whose path begins with one of these. */
export function useRefresh(): (starts: readonly string[]) => Promise<void> {
  const client = useQueryClient();
  return useCallback(
    (starts) =>
      client.invalidateQueries({
        predicate: ({ queryKey: [first] }) => starts.some((start) => String(first).startsWith(start)),
      }),
    [client],
  );
}

export interface ChangeOptions<A> {
  /** What to say when it went well. */
  readonly done?: string | ((answer: A) => string);
  /** Reads whose path begins with one of these are asked again. */
  readonly refreshes?: readonly string[];
  readonly onDone?: (answer: A) => void;
}

/** Changes something: `const retry = useChange("post", "/api/1/admin/jobs/failed/{id}/requeue", { done: "Queued again" })`. */
export function useChange<M extends Exclude<Method, "get">, P extends Path<M>>(
  method: M,
  path: P,
  { done, refreshes = [], onDone }: ChangeOptions<Answer<M, P>> = {},
): UseMutationResult<Answer<M, P>, Error, Omit<Wish<M, P>, "headers" | "signal" | "retries">> {
  const refresh = useRefresh();
  return useMutation({
    mutationFn: (wish) => (carillon[method] as unknown as AnyCall)(path, wish) as Promise<Answer<M, P>>,
    onSuccess: async (answer) => {
      const message = typeof done === "function" ? done(answer) : done;
      if (message !== undefined) void tell({ message, color: "green" });
      onDone?.(answer);
      await refresh(refreshes);
    },
    onError: (error) => void tell({ title: "That did not work", message: error.message, color: "red" }),
  });
}
