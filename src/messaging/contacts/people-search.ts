import { sql } from "kysely";
import type { Context } from "../../jobs/context.ts";
import type { Role } from "../../people/users/service.ts";

export interface FoundPerson {
  readonly sub: string;
  readonly uuid: string;
  readonly role: Role;
  readonly timezone: string | null;
  readonly given_name: string | null;
  readonly family_name: string | null;
  readonly created_at: number;
  readonly emails: readonly string[];
  readonly phones: readonly string[];
  readonly push_tokens: number;
}

export interface PeopleWish {
  /** A part of a name, an address or a number, or the beginning of a sub; everybody without it. */
  readonly search?: string | undefined;
  /** `next` of the page before. */
  readonly before?: string | undefined;
  readonly limit: number;
}

const NUMBER = /^[+\d\s().-]+$/;
const FEWEST_DIGITS = 3;

/** What the person typed, as it is: none of its characters is a wildcard. */
const literally = (text: string) => text.toLowerCase().replaceAll(/[\\%_]/g, "\\$&");

/** People by what one knows of them, the newest first, with their addresses. One query, whatever is searched for. */
export async function searchPeople(ctx: Pick<Context, "sql">, { search = "", before, limit }: PeopleWish) {
  const words = literally(search.trim());
  const digits = NUMBER.test(search) ? search.replaceAll(/\D/g, "") : "";
  const fits =
    words === ""
      ? sql`true`
      : sql`(lower(sub) like ${`${words}%`}
        or lower(concat_ws(' ', given_name, family_name)) like ${`%${words}%`}
        or id in (select user_id from user_email_addresses where lower(email) like ${`%${words}%`})
        or ${digits.length < FEWEST_DIGITS ? sql`false` : sql`id in (select user_id from user_phone_numbers where phone_number like ${`%${digits}%`})`})`;
  const older = before === undefined ? sql`true` : sql`uuid < ${before}::uuid`;
  const { rows } = await sql<FoundPerson>`
    select sub, uuid, role, timezone, given_name, family_name, created_at,
      array(select email from user_email_addresses where user_id = person.id order by id) as emails,
      array(select phone_number from user_phone_numbers where user_id = person.id order by id) as phones,
      (select count(*)::integer from user_push_tokens where user_id = person.id) as push_tokens
    from (select * from users where ${fits} and ${older} order by uuid desc limit ${limit + 1}::integer) as person
    order by uuid desc`.execute(ctx.sql.tables());
  const items = rows.slice(0, limit);
  return { items, next: rows.length > limit ? items.at(-1)!.uuid : null };
}
