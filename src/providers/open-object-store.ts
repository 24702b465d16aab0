import { join } from "node:path";
import type { Clock } from "../kernel/clock.ts";
import { type Config, settings } from "../kernel/config.ts";
import { DiskStore } from "./disk-store.ts";
import type { ObjectStore } from "./object-store.ts";

export const objectStoreSettings = {
  endpoint: settings.optionalText("s3.endpoint", {
    doc: "Address of the S3-compatible object store, such as https://s3.eu-central-1.amazonaws.com; unset, files live in the data folder",
  }),
  bucket: settings.text("s3.bucket", { default: "carillon", doc: "Bucket that holds all files" }),
  region: settings.text("s3.region", { default: "us-east-1", doc: "Region that requests to the object store name" }),
  accessKeyId: settings.optionalText("s3.accessKeyId", {
    doc: "Access key of the object store; unset, the platform's own credentials are used",
  }),
  secretAccessKey: settings.optionalText("s3.secretAccessKey", {
    doc: "Secret that belongs to the access key",
    secret: true,
  }),
  pathStyle: settings.flag("s3.pathStyle", {
    default: true,
    doc: "Put the bucket into the path instead of the host name, as most servers other than Amazon's want it",
  }),
};

/** The store that the settings name: an S3-compatible one when it has an address, else a folder below the data folder. */
export async function openObjectStore(
  config: Config,
  surroundings: { clock: Clock; dataDirectory: string },
): Promise<ObjectStore> {
  const bucket = config.get(objectStoreSettings.bucket);
  const endpoint = config.get(objectStoreSettings.endpoint);
  const { clock, dataDirectory } = surroundings;
  if (endpoint === undefined) return DiskStore.open({ directory: join(dataDirectory, "objects"), bucket, clock });
  const accessKeyId = config.get(objectStoreSettings.accessKeyId);
  const secretAccessKey = config.get(objectStoreSettings.secretAccessKey);
  // The client is large; installations whose files live in a folder never load it.
  const { S3Store } = await import("./s3-store.ts");
  return new S3Store({
    endpoint,
    bucket,
    region: config.get(objectStoreSettings.region),
    credentials: accessKeyId && secretAccessKey ? { accessKeyId, secretAccessKey } : undefined,
    pathStyle: config.get(objectStoreSettings.pathStyle),
    clock,
  });
}
