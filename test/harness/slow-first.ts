import { BaseSequencer, type TestSpecification } from "vitest/node";

/** What takes longest, and would keep one worker busy when the others have nothing left to do. */
const SLOW = /\/test\/(browser\/places|simulation\/day|browser|simulation|outages|crash)/;

const rankOf = ({ moduleId }: TestSpecification) => {
  const [, name] = SLOW.exec(moduleId) ?? [];
  if (name === undefined) return 2;
  return name.includes("/") ? 0 : 1;
};

/** Begins with the slow files, so that all workers end at about the same time. */
export class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return (await super.sort(files)).toSorted((one, other) => rankOf(one) - rankOf(other));
  }
}
