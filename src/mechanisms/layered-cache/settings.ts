import { settings } from "../../kernel/config.ts";

export const cacheSettings = {
  folder: settings.optionalText("cache.folder", {
    doc: "the folder for cached copies on this machine's disk, one for each instance; without it one below the data folder. It may be emptied while the instance is down",
  }),
};
