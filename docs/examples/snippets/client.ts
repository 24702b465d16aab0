import { type Answer, CarillonApiError, createCarillon } from "../../../src/client/index.ts";

export const carillon = createCarillon({
  baseUrl: "https://bells.example.com",
  token: process.env.ADMIN_TOKEN,
  retries: 2,
});

export async function orderShipped(order: { readonly id: number; readonly buyer: string; readonly what: string }) {
  const [touch] = await carillon.sendTouch(
    {
      user_sub: order.buyer,
      touch_point_event_slug: "order_shipped",
      channels: ["sms"],
      event_parameters: { what: order.what },
      links: [{ parameter: "url" }],
    },
    { idempotencyKey: `order-${order.id}-shipped` },
  );
  return touch!.uid;
}

export async function wasOpened(uid: string): Promise<boolean> {
  const { moments } = await carillon.get("/api/1/admin/touches/{uid}", { path: { uid } });
  return moments.some(({ step }) => step === "clicked");
}

export async function findUser(sub: string): Promise<Answer<"get", "/api/1/admin/users/{sub}"> | undefined> {
  try {
    return await carillon.get("/api/1/admin/users/{sub}", { path: { sub } });
  } catch (error) {
    if (error instanceof CarillonApiError && error.type === "user_not_found") return undefined;
    throw error;
  }
}

export async function remindInTheMorning(session: { accessToken(): Promise<string> }) {
  const me = carillon.as(() => session.accessToken());
  await me.post("/api/1/users/me/attributes/notification_time", {
    body: {
      channel: "all",
      days_of_week: ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday"],
      time_range: { type: "preset", preset: "morning" },
      timezone: Intl.DateTimeFormat().resolvedOptions().timeZone,
      timezone_technique: "browser",
    },
  });
  const { items } = await me.get("/api/1/users/me/daily_reminders/next");
  return items.map(({ date, earliest_local, channel }) => `${date} from ${earliest_local} by ${channel}`);
}
