// What the other scripts print, and how they run programs. Plain JavaScript without packages: it runs before they exist.
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("..", import.meta.url)).replace(/\/$/, "");

const lively = process.stdout.isTTY === true && !process.env.CI && !process.env.NO_COLOR;
const dim = (text) => (lively ? `\x1b[2m${text}\x1b[0m` : text);
const green = (text) => (lively ? `\x1b[32m${text}\x1b[0m` : text);
const red = (text) => (lively ? `\x1b[31m${text}\x1b[0m` : text);
export const bold = (text) => (lively ? `\x1b[1m${text}\x1b[0m` : text);

export function say(line = "") {
  process.stdout.write(`${line}\n`);
}

/** A failure with everything a person needs: what went wrong, what to do, and the output of the program that failed. */
export class StepFailed extends Error {
  constructor(message, { output = "", exitCode = 1 } = {}) {
    super(message);
    this.output = output;
    this.exitCode = exitCode;
  }
}

/** Does one thing and says so: its name while it lasts, its time when it is done. */
export async function step(name, work) {
  const began = performance.now();
  if (lively) process.stdout.write(`${dim("…")} ${name}`);
  else say(`… ${name}`);
  const finish = (mark, note) => {
    const seconds = ((performance.now() - began) / 1000).toFixed(1);
    process.stdout.write(
      `${lively ? "\r\x1b[K" : ""}${mark} ${name}${note ? `: ${note}` : ""} ${dim(`(${seconds} s)`)}\n`,
    );
  };
  try {
    const note = await work();
    finish(green("✓"), typeof note === "string" ? note : "");
  } catch (error) {
    finish(red("✗"), "");
    throw error;
  }
}

/** Runs a program quietly; its output is kept and shown only if it fails. */
export function run(command, args, { cwd = root, env = {}, failure } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd,
      env: { ...process.env, ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const chunks = [];
    child.stdout.on("data", (chunk) => chunks.push(chunk));
    child.stderr.on("data", (chunk) => chunks.push(chunk));
    child.on("error", (error) => reject(new StepFailed(`${command} cannot be run: ${error.message}`)));
    child.on("close", (code, signal) => {
      const output = Buffer.concat(chunks).toString("utf8");
      if (code === 0) resolve(output);
      else
        reject(
          new StepFailed(failure ?? `${[command, ...args].join(" ")} ended with ${signal ?? `code ${code}`}`, {
            output,
          }),
        );
    });
  });
}

/** Runs a program that speaks to the person itself; answers its exit code. */
export function runAloud(command, args, { cwd = root, env = {} } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd, env: { ...process.env, ...env }, stdio: "inherit" });
    child.on("error", reject);
    child.on("close", (code, signal) => resolve(signal ? 1 : (code ?? 1)));
  });
}

export function explain(error) {
  if (!(error instanceof StepFailed)) {
    process.stderr.write(`${error?.stack ?? error}\n`);
    return 1;
  }
  if (error.output.trim()) process.stderr.write(`\n${error.output.trimEnd()}\n`);
  process.stderr.write(`\n${red(error.message)}\n`);
  return error.exitCode;
}
