import { sql } from "kysely";
import type { Context } from "../../jobs/context.ts";
import type { ContactContext } from "./change.ts";
import { parseEmailAddress } from "./email-address.ts";
import { type EmailSuppression, suppressEmails } from "./email-suppression.ts";
import { errors } from "./errors.ts";
import { EMAIL_REASONS, EMAIL_SCOPES, type EmailReason, type EmailScope } from "./tables.ts";

/**
 * Suppressed addresses as a file, to take them along from one provider or installation to another. A file that was
 * exported and imported again changes nothing.
 */
const COLUMNS = ["email", "reason", "scope", "note", "created_at"] as const;
const ROWS_A_PAGE = 2_000;
const ROWS_A_CALL = 1_000;
/** Faults that are named one by one; a file of another kind has as many as it has lines. */
const NAMED_FAULTS = 100;
const LONGEST_NOTE = 1_000;

/** Spreadsheets run what begins like this; an apostrophe in front keeps it text, and is taken away again by the import. */
const LIKE_A_FORMULA = /^['=+\-@\t\r]/;

const cell = (text: string) => {
  const tame = LIKE_A_FORMULA.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(tame) ? `"${tame.replaceAll('"', '""')}"` : tame;
};

/** The lines of the file, page by page in the order in which addresses came. */
export async function* exportSuppressedEmails(ctx: Pick<Context, "sql">): AsyncGenerator<string> {
  yield `${COLUMNS.join(",")}\r\n`;
  let after = 0;
  for (;;) {
    const { rows } = await sql<{
      id: number;
      email_address: string;
      reason: EmailReason;
      scope: EmailScope;
      note: string | null;
      created_at: number;
    }>`
      select id, email_address, reason, scope, note, created_at from suppressed_emails
      where id > ${after}::bigint order by id limit ${ROWS_A_PAGE}::integer`.execute(ctx.sql.tables());
    if (rows.length === 0) return;
    after = rows.at(-1)!.id;
    yield rows
      .map(({ email_address, reason, scope, note, created_at }) =>
        [email_address, reason, scope, note ?? "", new Date(created_at * 1000).toISOString()].map(cell).join(","),
      )
      .map((line) => `${line}\r\n`)
      .join("");
  }
}

export interface ImportReport {
  readonly created: number;
  readonly strengthened: number;
  readonly kept: number;
  /** Lines that were left out. */
  readonly refused: number;
  /** Why, for the first hundred of them. */
  readonly faults: readonly { readonly line: number; readonly reason: string }[];
}

/**
 * Suppresses the addresses of a file. Its first line names the columns: `email` is needed; without `reason` it is `Admin`,
 * without `scope` `all`. A line that makes no sense is left out and named; the others count. With `dryRun` nothing is
 * written. Each thousand is a transaction, so a file that was imported halfway is simply imported again.
 */
export async function importSuppressedEmails(
  ctx: ContactContext,
  text: string,
  options: { readonly dryRun?: boolean } = {},
): Promise<ImportReport> {
  const [header, ...records] = readCsv(text);
  const names = header?.cells.map((name) => name.trim().toLowerCase()) ?? [];
  const unknown = names.find((name) => !COLUMNS.includes(name as (typeof COLUMNS)[number]));
  if (!names.includes("email") || unknown !== undefined)
    throw errors.unreadable_csv({
      message: `The first line must name the columns, among them email. Known are ${COLUMNS.join(", ")}.`,
    });
  const read = records.map((record) => ({ line: record.line, ...suppressionIn(names, record.cells) }));
  const faults = read.flatMap(({ line, fault }) => (fault === undefined ? [] : [{ line, reason: fault }]));
  const wishes = read.flatMap(({ wish }) => (wish === undefined ? [] : [wish]));
  const counts = { created: 0, strengthened: 0, kept: 0 };
  for (let from = 0; from < wishes.length && !options.dryRun; from += ROWS_A_CALL)
    for (const { outcome } of await suppressEmails(ctx, wishes.slice(from, from + ROWS_A_CALL))) counts[outcome] += 1;
  return { ...counts, refused: faults.length, faults: faults.slice(0, NAMED_FAULTS) };
}

function suppressionIn(
  names: readonly string[],
  cells: readonly string[],
): { wish?: EmailSuppression; fault?: string } {
  const value = (name: (typeof COLUMNS)[number]) =>
    (cells[names.indexOf(name)] ?? "").replace(/^'(?=['=+\-@\t\r])/, "");
  const [reason, scope, note] = [value("reason").trim() || "Admin", value("scope").trim() || "all", value("note")];
  const email = parseEmailAddress(value("email"));
  const known = EMAIL_REASONS.find((one) => one.toLowerCase() === reason.toLowerCase());
  const wide = EMAIL_SCOPES.find((one) => one === scope.toLowerCase());
  if (cells.length > names.length) return { fault: "has more cells than the first line names" };
  if (email === undefined) return { fault: "the email is not an email address" };
  if (known === undefined) return { fault: `the reason must be one of ${EMAIL_REASONS.join(", ")}` };
  if (wide === undefined) return { fault: `the scope must be one of ${EMAIL_SCOPES.join(", ")}` };
  if (note.length > LONGEST_NOTE || note.includes("\u0000"))
    return { fault: `the note is longer than ${LONGEST_NOTE}` };
  return { wish: { email, reason: known, scope: wide, ...(note === "" ? {} : { note }) } };
}

/** Records of a file with commas (RFC 4180), each with the line it begins on; empty lines are none. */
function readCsv(text: string): readonly { readonly line: number; readonly cells: readonly string[] }[] {
  const records: { line: number; cells: string[] }[] = [];
  let cells: string[] = [];
  let [line, start] = [1, 1];
  const token = /("(?:[^"]|"")*"|[^",\r\n]*)(,|\r\n|\n|\r|$)/gy;
  token.lastIndex = text.startsWith("\ufeff") ? 1 : 0;
  for (;;) {
    const at = token.lastIndex;
    const found = token.exec(text);
    if (!found)
      throw errors.unreadable_csv({ message: `Line ${line} has a quotation mark that is not closed or misplaced.` });
    const [, raw, end] = found as unknown as [string, string, string];
    cells.push(raw.startsWith('"') ? raw.slice(1, -1).replaceAll('""', '"') : raw);
    line += raw.match(/\r\n|\n|\r/g)?.length ?? 0;
    if (end === ",") continue;
    if (cells.length > 1 || cells[0] !== "") records.push({ line: start, cells });
    if (end === "" || at >= text.length) return records;
    cells = [];
    line += 1;
    start = line;
  }
}
