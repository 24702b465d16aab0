export type { CodeStyle } from "./codes.ts";
export { CODE_STYLES } from "./codes.ts";
export { addressesOf, type CreatedLink, createLinks, type NewLink } from "./create.ts";
export {
  type ClickEffects,
  installClickEffects,
  installLinkOwners,
  type LinkOwners,
  type NewClick,
} from "./effects.ts";
export { errors } from "./errors.ts";
export { abandonLinks, queuePersist, waitingAmong } from "./fate.ts";
export { linkCallbacks } from "./jobs.ts";
export { type LinkOrigin, originsOfLinks } from "./origins.ts";
export { checkTarget, definePage, definePreview, type Page, type Preview, type PreviewTags } from "./pages.ts";
export { recordTouches, type TouchRow } from "./rows.ts";
export { settings as linkSettings } from "./settings.ts";
export type { TouchChannel } from "./tables.ts";
export { type Click, clicksOfTouches, type LinkState, viewLink } from "./view.ts";
