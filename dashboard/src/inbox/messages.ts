import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useRef } from "react";
import { type Answer, carillon, LIVE, type Read, useChange, useRead } from "../api/index.ts";

const MESSAGES = "/api/1/sandbox/messages";
const SHOWN = 300;
const PATIENCE = 25;

export type Messages = Answer<"get", typeof MESSAGES>;
export type Message = Messages["items"][number];
export type MessageDetail = Answer<"get", "/api/1/sandbox/messages/{id}">;

/** What was sent, newest first; all of it, or what went to addresses with this part. */
export function useMessages(to: string): Read<Messages> {
  return useRead(MESSAGES, { query: { limit: SHOWN, ...(to === "" ? {} : { to }) } }, { every: LIVE });
}

/** Asks again as soon as something arrives: the server holds its answer until then. */
export function useArrivals(messages: Messages | undefined): void {
  const client = useQueryClient();
  const newest = useRef(0);
  newest.current = Math.max(newest.current, messages?.items[0]?.at ?? 0);
  useQuery({
    queryKey: ["arrivals of the sandbox"],
    enabled: messages !== undefined,
    gcTime: 0,
    refetchInterval: 200,
    queryFn: async ({ signal }) => {
      const query = { since: newest.current, timeout: PATIENCE };
      const arrived: MessageDetail | undefined = await carillon.get(`${MESSAGES}/wait`, { query, signal });
      if (arrived === undefined) return null;
      newest.current = Math.max(newest.current, arrived.at);
      await client.invalidateQueries({ queryKey: [MESSAGES] });
      return arrived.id;
    },
  });
}

export function useMessage(id: string): Read<MessageDetail> {
  return useRead("/api/1/sandbox/messages/{id}", { path: { id } }, { every: LIVE });
}

export type Action = Parameters<ReturnType<typeof useAction>["mutate"]>[0]["body"];

/** Lets something happen to a message. */
export function useAction(done: (answered: number | null) => string) {
  return useChange("post", "/api/1/sandbox/messages/{id}/actions", {
    done: ({ answered }) => done(answered),
    refreshes: ["/api/1/sandbox"],
  });
}

/** The people's side of a text: whose number it is, whoever wrote it. */
export const numberOf = (message: Message): string => (message.direction === "in" ? (message.from ?? "") : message.to);
