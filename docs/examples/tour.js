// node docs/examples/tour.js <admin token> [address of Carillon]
// From nothing to a delivered, clicked reminder, with the client. Needs a running Carillon whose texts go to the sandbox.
import { createCarillon } from "carillon/client";

const [token, baseUrl = "http://127.0.0.1:8787"] = process.argv.slice(2);
const carillon = createCarillon({ baseUrl, token, retries: 3 });

// A person, and the number at which your application knows them.
const phone = `+1415555${1000 + Math.floor(Math.random() * 9000)}`;
const { sub } = await carillon.post("/api/1/admin/users", { body: { given_name: "Grace" } });
await carillon.post("/api/1/admin/users/{sub}/contact_methods", {
  path: { sub },
  body: { phones: [{ phone_number: phone, verified: true, receives_notifications: true }] },
});

// What their app does: it says when they want to be reminded. Here that is the coming quarter of a minute, where they are.
const { access_token } = await carillon.post("/api/1/admin/users/{sub}/access_token", { path: { sub }, body: {} });
const app = carillon.as(access_token);
const timezone = "America/Los_Angeles";
const [hours, minutes, seconds] = new Date().toLocaleTimeString("en-GB", { timeZone: timezone }).split(":").map(Number);
const start = hours * 3600 + minutes * 60 + seconds;
await app.post("/api/1/users/me/attributes/notification_time", {
  body: {
    channel: "sms",
    days_of_week: ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"],
    time_range: { type: "explicit", start, end: start + 15 },
    timezone,
    timezone_technique: "app",
  },
});
const { items } = await app.get("/api/1/users/me/daily_reminders/next");
console.log(
  `${items.length} reminders in the next 14 days, the first at ${items[0].earliest_local} on ${items[0].date}`,
);

// Times are given every quarter of an hour; this does not wait for it.
await carillon.post("/api/1/admin/jobs", { body: { name: "runners.daily_reminders.assign_time", kwargs: {} } });
const text = await carillon.get("/api/1/sandbox/messages/wait", { query: { to: phone, timeout: 60 } });
console.log(text.text);

// What the person does: they open the link.
await fetch(text.text.match(/http\S+/)[0], { method: "POST", headers: { "user-agent": "Mozilla/5.0 Firefox/142.0" } });

// What happened, from the first moment to the click.
const { items: log } = await carillon.get("/api/1/admin/users/{sub}/touch_debug_log", { path: { sub } });
const uid = log.map(({ event }) => event.touch_uid).find(Boolean);
let story = await carillon.get("/api/1/admin/touches/{uid}", { path: { uid } });
while (story.pending) {
  await new Promise((resolve) => setTimeout(resolve, 500));
  story = await carillon.get("/api/1/admin/touches/{uid}", { path: { uid } });
}
for (const { at, step, provider } of story.moments)
  console.log(new Date(at * 1000).toISOString(), step, provider ?? "");
