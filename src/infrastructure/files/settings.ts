import { objectStoreSettings } from "../../providers/open-object-store.ts";

/** Where files are kept. The store is opened before any domain exists, so its own module declares them. */
export const settings = objectStoreSettings;
