// Before each test file: rooms tell each other what happened through what they install when they are loaded. Test files share
// a process, so that every one finds all rooms loaded, whichever came before it.
import "../../src/domains.ts";
