/**
 * The third parties that are called slowly on purpose. `intervals` names each kind of call with the seconds that must lie
 * between it and the call before, whichever kind that was.
 */
export interface SpacedApiPlan {
  readonly doc: string;
  readonly address: string;
  readonly intervals: Readonly<Record<string, number>>;
}

export const SPACED_APIS = {
  pexels: {
    doc: "photos and videos for artwork",
    address: "https://api.pexels.com",
    intervals: { search: 40, download: 40 },
  },
  "dall-e": {
    doc: "artwork made from a prompt",
    address: "https://api.openai.com/v1/images/generations",
    intervals: { generate: 5 },
  },
  "whisper-1": {
    doc: "transcripts of recordings",
    address: "https://api.openai.com/v1/audio/transcriptions",
    intervals: { transcribe: 5 },
  },
  chatgpt: {
    doc: "completions of texts",
    address: "https://api.openai.com/v1/chat/completions",
    intervals: { complete: 3 },
  },
  ccmixter: {
    doc: "background music under a free licence",
    address: "https://ccmixter.org/api/query",
    intervals: { query: 3, download: 30 },
  },
} as const satisfies Readonly<Record<string, SpacedApiPlan>>;

export type SpacedApiName = keyof typeof SPACED_APIS;

/** What may be asked of an API: `callOf<"ccmixter">` is `"query" | "download"`. */
export type CallOf<Api extends SpacedApiName> = Extract<keyof (typeof SPACED_APIS)[Api]["intervals"], string>;

export const spacedApiNames = Object.keys(SPACED_APIS) as readonly SpacedApiName[];

export function intervalsOf(api: SpacedApiName): Readonly<Record<string, number>> {
  return SPACED_APIS[api].intervals;
}

export function longestIntervalOf(api: SpacedApiName): number {
  return Math.max(...Object.values(intervalsOf(api)));
}

/** After an answer of 429 or 5xx a job tries again after these seconds; other refusals are final. */
export const SPACED_API_RETRY = [60, 300] as const;

export function isTransientAnswer(status: number): boolean {
  return status === 429 || status >= 500;
}
