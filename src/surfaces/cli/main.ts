import { CommanderError } from "commander";
import { EXIT, explainFailure } from "./exit.ts";
import { processIo } from "./io.ts";
import { program } from "./program.ts";

const io = processIo();
let code: number = EXIT.ok;
try {
  await program(io).parseAsync(process.argv);
} catch (error) {
  // Commander has already printed its own complaints, and help is no fault at all.
  if (error instanceof CommanderError) code = error.exitCode === 0 ? EXIT.ok : EXIT.usage;
  else code = explainFailure(error, io);
}
// Whatever a part left open must not keep a finished command alive; what was written is flushed first.
await Promise.all(
  [process.stdout, process.stderr].map((stream) => new Promise((resolve) => stream.write("", resolve))),
);
process.exit(code);
