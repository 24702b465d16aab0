/** Takes the webhooks of a provider: checked ones become news in a queue, every one of them is counted. */
export {
  type TakenWebhook,
  WebhookDesk,
  type WebhookDeskPlan,
  type WebhookEvents,
  type WebhookRefusal,
} from "./desk.ts";
