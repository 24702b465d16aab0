import { isUtf8 } from "node:buffer";
import { Readable } from "node:stream";
import { z } from "zod";
import { route } from "../../domain.ts";
import type { Context } from "../../jobs/context.ts";
import type { Route } from "../../kernel/route.ts";
import type { ContactTransaction } from "./change.ts";
import { EmailAddress } from "./email-address.ts";
import { suppressEmails, unsuppressEmails } from "./email-suppression.ts";
import { errors } from "./errors.ts";
import { liftAtProvider } from "./jobs.ts";
import { listEmailFailures, listSuppressedEmails, listSuppressedPhones } from "./listing.ts";
import { toE164 } from "./phone-number.ts";
import { suppressPhones, unsuppressPhones } from "./phone-suppression.ts";
import { exportSuppressedEmails, importSuppressedEmails } from "./suppression-csv.ts";
import { EMAIL_REASONS, EMAIL_SCOPES, PHONE_REASONS } from "./tables.ts";

/** Suppression as administrators see it. Channels know it under paths of their own, so each list has two. */
export const Cursor = z
  .string()
  .regex(/^\d{1,18}$/, "is not `next` of a page")
  .optional()
  .meta({ description: "`next` of the page before" });
const Limit = z.coerce.number().int().min(1).max(250).default(25);
const FilterText = z
  .string()
  .trim()
  .max(511)
  .regex(/^[^\p{Cc}]+$/u, "must be text without control characters")
  .optional();

export function pageOf<T extends z.ZodType>(item: T) {
  return z.object({ items: z.array(item), next: z.string().nullable() });
}

const SuppressedEmail = z.object({
  uid: z.string(),
  email_address: z.string(),
  reason: z.enum(EMAIL_REASONS),
  scope: z.enum(EMAIL_SCOPES),
  note: z.string().nullable(),
  created_at: z.number(),
});
const SuppressedPhone = z.object({
  uid: z.string(),
  phone_number: z.string(),
  reason: z.enum(PHONE_REASONS),
  reason_details: z.record(z.string(), z.unknown()),
  created_at: z.number(),
});
const EmailFailure = z.object({
  uid: z.string(),
  email_address: z.string(),
  failure_type: z.enum(["Bounce", "Complaint"]),
  failure_extra: z.string().nullable(),
  message_id: z.string().nullable(),
  created_at: z.number(),
});

const LARGEST_IMPORT = 20 * 1_048_576;
const Imported = z.object({
  created: z.number(),
  strengthened: z.number(),
  kept: z.number(),
  refused: z.number().meta({ description: "Lines that were left out" }),
  faults: z.array(z.object({ line: z.number(), reason: z.string() })),
});

function emailRoutes(base: string): readonly Route<Context>[] {
  return [
    route({
      method: "GET",
      path: base,
      access: "admin",
      summary: "List suppressed email addresses, the newest first",
      schemas: {
        query: z.object({ email: FilterText, reason: z.enum(EMAIL_REASONS).optional(), after: Cursor, limit: Limit }),
      },
      responses: { 200: pageOf(SuppressedEmail) },
      handle: async (ctx, { query }) => ({ status: 200, body: await listSuppressedEmails(ctx, query) }),
    }),
    route({
      method: "POST",
      path: base,
      access: "admin",
      summary: "Suppress an email address",
      description: "No mail of any kind goes to it, whoever has it. A weaker reason is replaced.",
      schemas: { body: z.strictObject({ email: EmailAddress, note: z.string().trim().min(1).max(1000).optional() }) },
      responses: { 201: SuppressedEmail },
      async handle(ctx, { body }) {
        const [done] = await suppressEmails(ctx, [{ ...body, reason: "Admin", scope: "all" }]);
        if (done!.outcome === "kept") throw errors.already_suppressed({ detail: { uid: done!.suppression.uid } });
        return { status: 201, body: done!.suppression };
      },
    }),
    route({
      method: "GET",
      path: `${base}/export`,
      access: "admin",
      summary: "Download all suppressed email addresses as CSV",
      handle: (ctx) => ({
        status: 200,
        headers: {
          "content-type": "text/csv; charset=utf-8",
          "content-disposition": 'attachment; filename="suppressed-emails.csv"',
          "cache-control": "no-store",
        },
        body: Readable.from(exportSuppressedEmails(ctx)),
      }),
    }),
    route({
      method: "POST",
      path: `${base}/import`,
      access: "admin",
      summary: "Suppress the email addresses of a CSV file",
      description:
        "The first line names the columns: `email`, and if you like `reason`, `scope`, `note`. Lines that make no sense are left out and named. With `dry_run=true` nothing is written.",
      schemas: { query: z.object({ dry_run: z.stringbool().default(false) }) },
      consumes: "raw",
      bodyLimit: LARGEST_IMPORT,
      responses: { 200: Imported },
      async handle(ctx, { query, body }) {
        const bytes: unknown = body;
        if (!Buffer.isBuffer(bytes) || !isUtf8(bytes)) throw errors.unreadable_csv();
        return {
          status: 200,
          body: await importSuppressedEmails(ctx, bytes.toString("utf8"), { dryRun: query.dry_run }),
        };
      },
    }),
    route({
      method: "DELETE",
      path: `${base}/{uid}`,
      access: "admin",
      summary: "Lift the suppression of an email address",
      description: "Also takes it off the list that the provider keeps for the account, if it keeps one.",
      schemas: { params: z.object({ uid: z.string().regex(/^crl_se_[\w-]{22}$/) }) },
      async handle(ctx, { params }) {
        // The provider's own list follows in a job that comes with the commit: it may be away just now.
        const also = ctx.providers.email?.suppressions
          ? (tx: ContactTransaction, emails: readonly string[]) =>
              ctx.jobs.enqueueIn(tx as never, liftAtProvider, { emails: [...emails] })
          : undefined;
        const freed = await unsuppressEmails(ctx, { uids: [params.uid] }, { also });
        if (freed.length === 0) throw errors.suppression_not_found();
        return { status: 204 };
      },
    }),
  ];
}

function phoneRoutes(base: string): readonly Route<Context>[] {
  return [
    route({
      method: "GET",
      path: base,
      access: "admin",
      summary: "List suppressed phone numbers, the newest first",
      schemas: {
        query: z.object({
          phone_number: FilterText,
          reason: z.enum(PHONE_REASONS).optional(),
          after: Cursor,
          limit: Limit,
        }),
      },
      responses: { 200: pageOf(SuppressedPhone) },
      async handle(ctx, { query: { phone_number, ...query } }) {
        const phoneNumber = phone_number === undefined ? undefined : toE164(phone_number).number;
        return { status: 200, body: await listSuppressedPhones(ctx, { ...query, phoneNumber }) };
      },
    }),
    route({
      method: "POST",
      path: base,
      access: "admin",
      summary: "Suppress a phone number",
      schemas: { body: z.strictObject({ phone_number: z.string().trim().min(1).max(64) }) },
      responses: { 201: SuppressedPhone },
      async handle(ctx, { body }) {
        const phoneNumber = toE164(body.phone_number).number;
        const [done] = await suppressPhones(ctx, [{ phoneNumber, reason: "User", details: { by: "admin" } }]);
        if (done!.outcome === "kept") throw errors.already_suppressed({ detail: { uid: done!.suppression.uid } });
        return { status: 201, body: done!.suppression };
      },
    }),
    route({
      method: "DELETE",
      path: `${base}/{uid}`,
      access: "admin",
      summary: "Lift the suppression of a phone number",
      schemas: { params: z.object({ uid: z.string().regex(/^crl_spn_[\w-]{22}$/) }) },
      async handle(ctx, { params }) {
        const freed = await unsuppressPhones(ctx, { uids: [params.uid] });
        if (freed.length === 0) throw errors.suppression_not_found();
        return { status: 204 };
      },
    }),
  ];
}

export const suppressionRoutes: readonly Route<Context>[] = [
  ...emailRoutes("/api/1/admin/suppressed_emails"),
  ...emailRoutes("/api/1/admin/email/suppressions"),
  ...phoneRoutes("/api/1/admin/suppressed_phone_numbers"),
  ...phoneRoutes("/api/1/admin/sms/suppressed_phone_numbers"),
  route({
    method: "GET",
    path: "/api/1/admin/email/failures",
    access: "admin",
    summary: "List bounces and complaints, the newest first",
    schemas: { query: z.object({ email: FilterText, after: Cursor, limit: Limit }) },
    responses: { 200: pageOf(EmailFailure) },
    handle: async (ctx, { query }) => ({ status: 200, body: await listEmailFailures(ctx, query) }),
  }),
];
