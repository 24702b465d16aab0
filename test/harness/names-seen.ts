import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { Redis } from "ioredis";

/**
 * Which names of keys and channels the tests of this process handed to Redis, for the check that every declared pattern
 * is used by some test. Only a full run asks for it, by naming a folder; otherwise nothing is wrapped.
 *
 * Names that differ only in numbers and ids are kept once. Matching them with the declarations is left to the end of
 * the run: loading every room in every test process would cost more than all the rest.
 */
const folder = process.env.CARILLON_NAMES_SEEN;

const CHANNEL_COMMANDS = new Set(["publish", "subscribe", "ssubscribe", "spublish"]);
const LONGEST_NAME = 512;
/** A script that publishes is told the channel among its first arguments. */
const ARGUMENTS_LOOKED_AT = 6;
const COULD_BE_A_CHANNEL = /^[\w:.@+-]+:[\w:.@+-]+$/;

const known = new Set<string>();
let unwritten: string[] = [];

/** Two names of one shape belong to one pattern, as far as anybody can tell without the declarations. */
function shapeOf(name: string): string {
  return name.replace(/[^:]*[0-9A-Z][^:]*/g, (part) => (part.length >= 16 ? "*" : part.replace(/\d+/g, "0")));
}

function see(kind: "key" | "channel", name: unknown): void {
  const text = typeof name === "string" ? name : Buffer.isBuffer(name) ? name.toString("utf8") : "";
  if (text === "" || text.length > LONGEST_NAME) return;
  const shape = `${kind} ${shapeOf(text)}`;
  if (known.has(shape)) return;
  known.add(shape);
  unwritten.push(JSON.stringify([kind, text]));
}

function seeChannelsOf([, count, ...rest]: readonly unknown[]): void {
  const from = Number(count);
  for (const argument of rest.slice(from, from + ARGUMENTS_LOOKED_AT))
    if (typeof argument === "string" && argument.length < 128 && COULD_BE_A_CHANNEL.test(argument))
      see("channel", argument);
}

/** Every connection of the process, also duplicates for subscriptions and those of the code under test, sends this way. */
function wrapConnections(): void {
  const { sendCommand } = Redis.prototype;
  Redis.prototype.sendCommand = function (this: Redis, command, stream) {
    if (CHANNEL_COMMANDS.has(command.name)) for (const name of command.args.slice(0, 1)) see("channel", name);
    else for (const name of command.getKeys()) see("key", name);
    if (command.name === "evalsha") seeChannelsOf(command.args);
    return sendCommand.call(this, command, stream);
  };
}
if (folder) wrapConnections();

/** Writes down what was seen since the last time. Called when a test's server closes: the process may be ended hard. */
export function writeNamesSeen(): void {
  if (!folder || unwritten.length === 0) return;
  appendFileSync(join(folder, `${process.pid}.names`), `${unwritten.join("\n")}\n`);
  unwritten = [];
}
