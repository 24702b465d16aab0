export { type Instance, type InstanceRole, liveInstances, reserveInstance } from "./instance.ts";
export { claimPidFile, type PidFile, pidFileHolder } from "./pid-file.ts";
