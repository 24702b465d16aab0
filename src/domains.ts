import type { Domain } from "./domain.ts";
import { access } from "./infrastructure/access/index.ts";
import { deployments } from "./infrastructure/deployments/index.ts";
import { externalApis } from "./infrastructure/external_apis/index.ts";
import { files } from "./infrastructure/files/index.ts";
import { jobs } from "./infrastructure/jobs/index.ts";
import { operations } from "./infrastructure/operations/index.ts";
import { sandbox } from "./infrastructure/sandbox/index.ts";
import { signingKeys } from "./infrastructure/signing_keys/index.ts";
import { webhooks } from "./infrastructure/webhooks/index.ts";
import { statisticsDomain } from "./insight/statistics/index.ts";
import { contacts } from "./messaging/contacts/index.ts";
import { email } from "./messaging/email/index.ts";
import { emailTemplates } from "./messaging/email_templates/index.ts";
import { links } from "./messaging/links/index.ts";
import { messages } from "./messaging/messages/index.ts";
import { push } from "./messaging/push/index.ts";
import { reminders } from "./messaging/reminders/index.ts";
import { sms } from "./messaging/sms/index.ts";
import { touch } from "./messaging/touch/index.ts";
import { usersDomain } from "./people/users/index.ts";

/** The floor plan: every domain, in dependency order. A domain may use only those above it, through their `service.ts`. */
export const domains: readonly Domain[] = [
  usersDomain(() => domains),
  access,
  jobs,
  operations,
  files,
  deployments,
  externalApis,
  signingKeys,
  sandbox,
  statisticsDomain(() => domains),
  webhooks,
  contacts,
  sms,
  emailTemplates,
  email,
  push,
  links,
  messages,
  touch,
  reminders,
];
