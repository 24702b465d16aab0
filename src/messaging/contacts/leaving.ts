import { sql } from "kysely";
import type { ContactTransaction } from "./change.ts";
import type { Unsubscribed } from "./effects.ts";

/** An address that was left, before it is known whose it is. */
export interface Leaving extends Omit<Unsubscribed, "userSub" | "at"> {
  /** Only this account left; otherwise all that have the address did. */
  readonly userId?: number;
}

/** The accounts behind addresses that were left, with one query for all of them. */
export async function whoLeft(
  tx: ContactTransaction,
  leaving: readonly Leaving[],
  at: number,
): Promise<readonly Unsubscribed[]> {
  const { rows } = await sql<{ place: number; sub: string }>`
    with asked as (
      select * from unnest(
        ${leaving.map(({ channel }) => channel)}::text[], ${leaving.map(({ address }) => address)}::text[],
        ${leaving.map(({ userId }) => userId ?? null)}::bigint[]
      ) with ordinality as asked (channel, address, user_id, place)
    ), owners as (
      select asked.place, asked.user_id as only, method.user_id from asked
      join user_email_addresses as method on asked.channel = 'email' and lower(method.email) = lower(asked.address)
      union
      select asked.place, asked.user_id, method.user_id from asked
      join user_phone_numbers as method on asked.channel = 'phone' and method.phone_number = asked.address
      union
      select asked.place, asked.user_id, method.user_id from asked
      join user_push_tokens as method on asked.channel = 'push' and method.token = asked.address
    )
    select owners.place, users.sub from owners join users on users.id = owners.user_id
    where owners.only is null or owners.only = users.id order by owners.place, users.id`.execute(tx);
  const subs = new Map<number, string[]>();
  for (const { place, sub } of rows) subs.set(place, [...(subs.get(place) ?? []), sub]);
  return leaving.flatMap(({ userId: _, ...left }, index) =>
    (subs.get(index + 1) ?? [null]).map((userSub) => ({ ...left, userSub, at })),
  );
}
