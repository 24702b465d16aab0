import { z } from "zod";
import { channel, expires, family, integer, json, matching, string, text } from "../../kernel/keyspace/index.ts";
import { tokenLock } from "../../mechanisms/lock/index.ts";

/** Seconds that one instance may be away before the next one takes its turn. */
export const TURN_LEASE = 300;
export const ATTEMPT_WINDOW = 60;

export const SHA = /^[0-9a-f]{7,64}$/;
export const REPO = /[a-z][a-z0-9-]*/;

/** A build that lies in the object store, as builder and launcher announce it. */
export const BuiltArtefact = z.object({
  sha: z.string().regex(SHA),
  bucket: z.string(),
  key: z.string(),
  size: z.number().int().min(0),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
});
export type BuiltArtefact = z.infer<typeof BuiltArtefact>;

const artefact = json(BuiltArtefact, { shape: '`{"sha","bucket","key","size","sha256"}`' });
const params = { repo: REPO };

export const keys = family("deployments", {
  updates: channel("updates:{repo}", text, {
    doc: "asks every instance of a unit to update; `stop-without-restart` asks it to stop",
    params,
  }),
  lock: string("updates:{repo}:lock", tokenLock, {
    doc: "the instance of a unit whose turn it is to be away, or to build; released by its successor",
    ttl: expires(TURN_LEASE),
    lock: "token",
    params,
  }),
  buildReady: channel("updates:{repo}:build_ready", artefact, {
    doc: "the builder tells whoever launched it that the build is stored",
    params,
  }),
  doUpdate: channel("updates:{repo}:do_update", artefact, {
    doc: "asks every instance of a unit to take over this build",
    params,
  }),
  buildHash: string("builds:{repo}:hash", matching(SHA, "commit sha, 7 to 64 hex digits"), {
    doc: "the commit of the build that is now in the object store",
    params,
  }),
  requestAttempts: string("updates:request_attempts:{address}", integer, {
    doc: "requests for an update that came from one address within a minute",
    ttl: expires(ATTEMPT_WINDOW),
    origin: "carillon",
    secret: true,
    params: { address: /[0-9A-Za-z.:%_-]+/ },
  }),
});

/** What a message on `updates:{repo}` asks for. */
export type UpdateMessage = { readonly kind: "stop" } | { readonly kind: "update"; readonly sha: string | undefined };

const STOP = "stop-without-restart";
const UpdatePayload = z.object({ sha: z.string().regex(SHA).nullish() });

/** Any payload asks for an update; one that names a commit asks for that one. */
export function readUpdateMessage(raw: Buffer): UpdateMessage {
  const written = raw.toString("utf8");
  if (written === STOP) return { kind: "stop" };
  try {
    return { kind: "update", sha: UpdatePayload.parse(JSON.parse(written)).sha ?? undefined };
  } catch {
    return { kind: "update", sha: undefined };
  }
}

export function writeUpdateMessage(sha: string | undefined, now: number): string {
  return sha === undefined ? "1" : JSON.stringify({ sha, requested_at: now });
}
