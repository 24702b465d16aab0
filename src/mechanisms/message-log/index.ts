export { messageLogKeys } from "./keys.ts";
export { MOST_GROUPS, noteSteps, notesSettled } from "./log.ts";
export type { Note } from "./notes.ts";
export { messageLogSettings } from "./settings.ts";
export { eachOfRenderedList, lookFor, type Sighting, type Station } from "./sightings.ts";
export { pruneSteps, type StoreOptions, storeNotes } from "./store.ts";
export { type KnownMessage, messagesTo, type Step, storyOf } from "./story.ts";
export { type MessageLogTables, messageLogMigrations } from "./tables.ts";
