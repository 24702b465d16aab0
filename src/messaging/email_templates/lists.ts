/** The lists that mails belong to, as people choose among them: each can be left alone. */
export const LISTS = {
  reminders: { title: "Daily reminders", doc: "At the time of day that you chose" },
  announcements: { title: "News", doc: "What is new, now and then" },
} as const;

/** Mails that people can leave one by one; `null` instead of a list means a mail that only its cause can prevent. */
export type List = keyof typeof LISTS;
