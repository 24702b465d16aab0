import { BaseSequencer, type TestSpecification } from "vitest/node";

/** What takes longest, slowest first: begun late, it would keep one worker busy when the others have nothing left to do. */
const SLOW = [
  /\/test\/browser\/places/,
  /\/test\/simulation\/(day|people)/,
  /\/test\/(browser|outages)\//,
  /\/src\/surfaces\/(cli\/cli|demo\/demo)\./,
  /\/test\/(simulation|crash)\//,
  /\/(crash|reminders|builds|campaigns|send)\.test/,
];

const rankOf = ({ moduleId }: TestSpecification) => {
  const rank = SLOW.findIndex((pattern) => pattern.test(moduleId));
  return rank < 0 ? SLOW.length : rank;
};

/** Begins with the slow files, so that all workers end at about the same time. */
export class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return (await super.sort(files)).toSorted((one, other) => rankOf(one) - rankOf(other));
  }
}
