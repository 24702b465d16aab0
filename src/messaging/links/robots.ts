import type { IncomingHttpHeaders } from "node:http";
import { isbotMatch } from "isbot";

/** Programs that open the links of mails to look for dangers, and that do not call themselves robots. */
const SCANNERS: readonly (readonly [rule: string, agent: RegExp])[] = [
  ["scanner:barracuda", /barracuda/i],
  ["scanner:mimecast", /mimecast/i],
  ["scanner:proofpoint", /proofpoint|urldefense/i],
  ["scanner:safelinks", /safelinks|microsoft office.*(protect|scan)|msoffice existence/i],
  ["scanner:symantec", /symantec|messagelabs/i],
  ["scanner:trendmicro", /trend ?micro/i],
];
/** A browser says so when it fetches a page that nobody asked for yet. */
const AHEAD = /\b(prefetch|prerender|preview|preconnect)\b/i;
const PURPOSES = ["sec-purpose", "purpose", "x-purpose", "x-moz"] as const;
const LONGEST_RULE = 60;
/** Programs that were looked at lately, by the name they gave: there are few of them, and looking takes long. */
const looked = new Map<string, string>();
const NO_RULE = "";
const MOST_LOOKED = 5_000;
/** No longer name is worth remembering. */
const LONGEST_AGENT = 512;

/**
 * The rule by which a request is known to come from a program and not from a person; nothing for people. Programs are
 * answered like people, and counted apart from them.
 */
export function robotRule(method: string, headers: IncomingHttpHeaders): string | undefined {
  if (method === "HEAD") return "head";
  for (const name of PURPOSES) {
    const said = headers[name];
    if (typeof said === "string" && AHEAD.test(said)) return "ahead_of_time";
  }
  const agent = headers["user-agent"];
  if (agent === undefined || agent.trim() === "") return "no_agent";
  const known = looked.get(agent);
  if (known !== undefined) return known === NO_RULE ? undefined : known;
  const rule = ruleOf(agent);
  if (looked.size >= MOST_LOOKED) looked.clear();
  if (agent.length <= LONGEST_AGENT) looked.set(agent, rule ?? NO_RULE);
  return rule;
}

function ruleOf(agent: string): string | undefined {
  for (const [rule, form] of SCANNERS) if (form.test(agent)) return rule;
  const match = isbotMatch(agent);
  return match ? `agent:${match.toLowerCase().replaceAll(/[^a-z0-9._-]+/g, "_")}`.slice(0, LONGEST_RULE) : undefined;
}
