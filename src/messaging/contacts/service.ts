export {
  type AddressOutcome,
  addEmails,
  addOwnEmail,
  addPhones,
  type NewEmail,
  type NewPhone,
  verifyEmails,
} from "./addresses.ts";
export type { ContactContext, ContactTransaction } from "./change.ts";
export {
  countReachable,
  type Destination,
  destinationsOf,
  type HeldEmail,
  isHeldBack,
  type Person,
  reachableAmong,
  reachableBetween,
  type SuppressedAmong,
  suppressedAmong,
  type WhichPeople,
} from "./destinations.ts";
export {
  type AddedReason,
  type ContactEffects,
  installEffects,
  type ReachChange,
  type ReminderEffects,
  type ReminderSettings,
  type RemovedReason,
  type TokenCounts,
  type TokenEvent,
  type Unsubscribed,
  type Unsubscriptions,
  type VerificationMail,
} from "./effects.ts";
export { EmailAddress, isEmailAddress, parseEmailAddress } from "./email-address.ts";
export {
  type EmailSuppression,
  type EmailSuppressionOutcome,
  type SuppressedEmail,
  suppressEmails,
  type Unsubscription,
  unsubscribeEmails,
  unsuppressEmails,
} from "./email-suppression.ts";
export { errors } from "./errors.ts";
export { type EmailFailure, suppressAfterFailure } from "./failures.ts";
export { chooseLists, heldBack, type ListChoice } from "./list-choices.ts";
export { type ContactMethods, contactMethodLog, contactMethodsOf, listEmailFailures } from "./listing.ts";
export {
  disablePushToken,
  type NotificationSwitch,
  removeContactMethods,
  type SwitchCause,
  switchNotifications,
} from "./notifications.ts";
export { parsePhoneNumber, toE164 } from "./phone-number.ts";
export {
  type OptIn,
  optIn,
  optOut,
  type PhoneSuppression,
  type PhoneSuppressionOutcome,
  type SuppressedPhone,
  suppressPhones,
  unsuppressPhones,
} from "./phone-suppression.ts";
export { confirmPushTokens, pushTokensCreatedBefore, type TokenConfirmation } from "./push-token-facts.ts";
export {
  deletePushTokens,
  PUSH_TOKEN,
  type RegistrationOutcome,
  registerPushTokens,
  type TokenRegistration,
  type UnrecognizedToken,
} from "./push-tokens.ts";
export { exportSuppressedEmails, type ImportReport, importSuppressedEmails } from "./suppression-csv.ts";
export {
  type Channel,
  type EmailReason,
  type EmailScope,
  type PhoneReason,
  PLATFORMS,
  type Platform,
} from "./tables.ts";
export { noteSettingsImproved, settingsImprovedAt, type TimePrompt, timePromptOf } from "./time-prompt.ts";
