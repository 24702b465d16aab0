import { createAdminToken } from "../../src/infrastructure/access/service.ts";
import type { House } from "../../src/surfaces/house.ts";

/** What somebody wrote who hopes that a page takes it for more than text. */
export const SCRIPT = "<img src=x onerror=alert(1)><script>alert('hello')</script>";

export interface PeopleScene {
  /** The uid of a touch point that has words for every channel. */
  readonly pointUid: string;
  /** A touch that was queued when the scene was set. */
  readonly touchUid: string;
  call<T>(method: string, path: string, body?: object): Promise<T>;
}

const PEOPLE = [
  { sub: "ada", given_name: "Ada", family_name: SCRIPT, timezone: "Europe/Berlin" },
  { sub: "amara.okafor", given_name: "Amara", family_name: "Okafor", timezone: "Africa/Lagos" },
  { sub: "bruno", given_name: "Bruno", timezone: "America/Sao_Paulo" },
  { sub: "chiyo", given_name: "Chiyo", family_name: "Tanaka", timezone: "Asia/Tokyo" },
  { sub: "quiet", timezone: "America/Los_Angeles" },
] as const;

const text = (example: string) => ({ type: "string", example });

/** Three clickable messages; whoever wrote the mail's subject hoped for more than text. */
export const POINT = {
  event_slug: "class_starts",
  event_schema: {
    type: "object",
    properties: { name: text("Ada"), url: text("https://example.com/l/4Wq9") },
    required: ["name"],
    additionalProperties: true,
  },
  selection_strategy: "fixed",
  messages: {
    sms: [
      {
        priority: 1,
        uid: "crl_tpsms_class_starts",
        body_format: `Hi {name} ${SCRIPT}, your class starts: {url}`,
        body_parameters: ["name", "url"],
      },
    ],
    push: [
      {
        priority: 1,
        uid: "crl_tppush_class_starts",
        title_format: "Soon, {name}",
        title_parameters: ["name"],
        body_format: `Your class starts in an hour ${SCRIPT}`,
        body_parameters: [],
        channel_id: "classes",
      },
    ],
    email: [
      {
        priority: 1,
        uid: "crl_tpem_class_starts",
        subject_format: "Your class starts, {name}",
        subject_parameters: ["name"],
        template: "sample",
        template_parameters_fixed: { message: SCRIPT },
        template_parameters_substituted: [{ key: ["name"], format: "{name}", parameters: ["name"] }],
      },
    ],
  },
};

/** People who can be reached, a touch point, and a touch on its way, all through the interface that applications use. */
export async function peopleScene({ ctx, url }: House): Promise<PeopleScene> {
  const { token } = await createAdminToken(ctx, { label: "people scene" });
  const call = async <T>(method: string, path: string, body?: object): Promise<T> => {
    const response = await fetch(url + path, {
      method,
      headers: { authorization: `Bearer ${token}`, ...(body ? { "content-type": "application/json" } : {}) },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    const answer = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${answer}`);
    return (answer === "" ? undefined : JSON.parse(answer)) as T;
  };
  await call("PATCH", "/api/1/sandbox/knobs", { twilio: { stepSeconds: 0.2 }, recipients: { previewBots: 1 } });
  for (const [at, person] of PEOPLE.entries()) {
    await call("POST", "/api/1/admin/users", person);
    if (person.sub === "quiet") continue;
    await call("POST", `/api/1/admin/users/${person.sub}/contact_methods`, {
      emails: [{ email: `${person.sub}@example.com`, verified: true }],
      phones: [{ phone_number: `+1202555013${at}`, verified: true, receives_notifications: true }],
    });
  }
  await call("POST", "/api/1/admin/jobs", { name: "runners.daily_reminders.assign_time", kwargs: {} });
  const { uid: pointUid } = await call<{ uid: string }>("POST", "/api/1/admin/touch_points", POINT);
  const { touches } = await call<{ touches: { uid: string }[] }>("POST", "/api/1/admin/touches", {
    user_sub: "amara.okafor",
    touch_point_event_slug: POINT.event_slug,
    channels: ["sms"],
    event_parameters: { name: "Amara" },
    links: [{ parameter: "url", code_style: "short" }],
  });
  return { pointUid, touchUid: touches[0]!.uid, call };
}
