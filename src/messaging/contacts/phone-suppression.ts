import { sql } from "kysely";
import { newUid } from "../../kernel/ids.ts";
import { type ContactContext, type ContactTransaction, changeContacts } from "./change.ts";
import type { RemovedReason } from "./effects.ts";
import type { PhoneReason } from "./tables.ts";

/**
 * Numbers that get no texts. As with emails, suppression belongs to the number and outlives accounts. The first reason
 * stays: whoever lifts it decides anew. A text with STOP suppresses and one with START lifts; neither changes what a
 * user has switched on or off.
 */
export interface PhoneSuppression {
  /** E.164. */
  readonly phoneNumber: string;
  readonly reason: PhoneReason;
  readonly details?: Readonly<Record<string, unknown>>;
}

/** The reasons that are a person's wish. */
const WISHES = { Stop: "stop", User: "unsubscribed" } as const;

export interface SuppressedPhone {
  readonly uid: string;
  readonly phone_number: string;
  readonly reason: PhoneReason;
  readonly reason_details: Record<string, unknown>;
  readonly created_at: number;
}

export interface PhoneSuppressionOutcome {
  readonly outcome: "created" | "kept";
  readonly suppression: SuppressedPhone;
}

export async function suppressPhones(
  ctx: ContactContext,
  suppressions: readonly PhoneSuppression[],
  ifRemoved: RemovedReason = "unreachable",
): Promise<readonly PhoneSuppressionOutcome[]> {
  if (suppressions.length === 0) return [];
  const numbers = suppressions.map(({ phoneNumber }) => phoneNumber);
  return changeContacts(ctx, async (tx, change) => {
    const inserted = await sql<{ uid: string }>`
      insert into suppressed_phone_numbers (uid, phone_number, reason, reason_details, created_at)
      select asked.*, to_timestamp(${ctx.clock.now()}::float8) from unnest(
        ${suppressions.map(() => newUid("spn"))}::text[], ${numbers}::text[],
        ${suppressions.map(({ reason }) => reason)}::text[],
        ${suppressions.map(({ details = {} }) => JSON.stringify(details))}::jsonb[]
      ) as asked (uid, number, reason, details) order by asked.number
      on conflict (phone_number) do nothing returning uid`.execute(tx);
    const { rows } = await sql<SuppressedPhone>`
      select held.uid, held.phone_number, held.reason, held.reason_details, held.created_at
      from unnest(${numbers}::text[]) with ordinality as asked (number, place)
      join suppressed_phone_numbers as held on held.phone_number = asked.number
      order by asked.place`.execute(tx);
    const fresh = new Set(inserted.rows.map(({ uid }) => uid));
    const created = rows.filter(({ uid }) => fresh.has(uid)).map(({ phone_number }) => phone_number);
    if (created.length > 0) {
      const owners = await lockOwners(tx, created);
      change.reach("phone", new Set(owners.map(({ user_id }) => user_id)), { ifRemoved });
    }
    for (const { uid: key, phone_number: address, reason } of rows)
      if (fresh.has(key) && reason !== "Unreachable")
        change.left({ key, channel: "phone", address, reason: WISHES[reason], scope: null });
    return rows.map((suppression) => ({ outcome: fresh.has(suppression.uid) ? "created" : "kept", suppression }));
  });
}

/** Lifts suppressions by uid or number, as support does. Answers the numbers that are free again. */
export async function unsuppressPhones(
  ctx: ContactContext,
  which: { readonly uids: readonly string[] } | { readonly phoneNumbers: readonly string[] },
): Promise<readonly string[]> {
  const named =
    "uids" in which
      ? sql`uid = any(${[...which.uids]}::text[])`
      : sql`phone_number = any(${[...which.phoneNumbers]}::text[])`;
  return changeContacts(ctx, async (tx, change) => {
    const { rows } = await sql<{ phone_number: string }>`
      delete from suppressed_phone_numbers where ${named} returning phone_number`.execute(tx);
    const freed = rows.map(({ phone_number }) => phone_number);
    const owners = freed.length > 0 ? await lockOwners(tx, freed) : [];
    change.reach("phone", new Set(owners.map(({ user_id }) => user_id)), { ifAdded: "sms_start" });
    return freed;
  });
}

/** STOP was texted from these numbers. */
export function optOut(
  ctx: ContactContext,
  phoneNumbers: readonly string[],
): Promise<readonly PhoneSuppressionOutcome[]> {
  return suppressPhones(
    ctx,
    phoneNumbers.map((phoneNumber) => ({ phoneNumber, reason: "Stop" })),
    "sms_stop",
  );
}

export interface OptIn {
  /** How many accounts have the number. */
  readonly users: number;
  /** The text proved the number to its one account. */
  readonly verified: boolean;
  readonly unsuppressed: boolean;
}

/**
 * START was texted from these numbers. It always undoes a STOP. Where exactly one account has the number, the text also
 * proves that the number is reached and belongs to that account, so any suppression is lifted and it is verified.
 */
export async function optIn(ctx: ContactContext, phoneNumbers: readonly string[]): Promise<readonly OptIn[]> {
  if (phoneNumbers.length === 0) return [];
  return changeContacts(ctx, async (tx, change) => {
    const owners = await lockOwners(tx, phoneNumbers);
    const byNumber = groupByNumber(owners);
    const single = [...byNumber.values()].flatMap((rows) => (rows.length === 1 ? rows : []));
    const unproven = single.filter(({ verified }) => !verified);
    if (unproven.length > 0)
      await sql`
        update user_phone_numbers set verified = true
        where id = any(${unproven.map(({ id }) => id)}::bigint[])`.execute(tx);
    const { rows } = await sql<{ phone_number: string }>`
      delete from suppressed_phone_numbers where phone_number = any(${[...phoneNumbers]}::text[])
        and (reason = 'Stop' or phone_number = any(${single.map(({ phone_number }) => phone_number)}::text[]))
      returning phone_number`.execute(tx);
    for (const { user_id: userId, phone_number: identifier } of unproven) {
      change.count("verified", "phone:sms_start");
      change.note({ userId, channel: "phone", identifier, action: "verify", reason: { source: "sms_start" } });
    }
    change.reach("phone", new Set(owners.map(({ user_id }) => user_id)), { ifAdded: "sms_start" });
    const freed = new Set(rows.map(({ phone_number }) => phone_number));
    const proven = new Set(unproven.map(({ phone_number }) => phone_number));
    return phoneNumbers.map((number) => ({
      users: byNumber.get(number)?.length ?? 0,
      verified: proven.has(number),
      unsuppressed: freed.has(number),
    }));
  });
}

interface Owner {
  readonly id: number;
  readonly user_id: number;
  readonly phone_number: string;
  readonly verified: boolean;
}

async function lockOwners(tx: ContactTransaction, numbers: readonly string[]): Promise<readonly Owner[]> {
  const { rows } = await sql<Owner>`
    select id, user_id, phone_number, verified from user_phone_numbers
    where phone_number = any(${[...numbers]}::text[]) order by id for update`.execute(tx);
  return rows;
}

function groupByNumber(owners: readonly Owner[]): Map<string, Owner[]> {
  const groups = new Map<string, Owner[]>();
  for (const owner of owners) groups.set(owner.phone_number, [...(groups.get(owner.phone_number) ?? []), owner]);
  return groups;
}
