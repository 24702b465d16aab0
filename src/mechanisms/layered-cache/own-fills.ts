/** A fill that this process published and will hear of. */
export interface OwnFill<Value> {
  readonly id: string;
  readonly value: Value;
  readonly checkedAt: number | undefined;
}

const MOST_EXPECTED = 5000;

/**
 * The fills that this process has sent and whose frames have not come back yet. They come back in the order they were
 * sent, so a frame that equals the first one is ours, and its value need not be decoded from it again. Whatever is not
 * recognised is decoded like any other frame: a gap in here costs time, never truth.
 */
export class OwnFills<Value> {
  #expected: { readonly frame: Buffer; readonly fill: OwnFill<Value> }[] = [];

  expect(frame: Buffer, fill: OwnFill<Value>): void {
    if (this.#expected.length >= MOST_EXPECTED) this.clear();
    this.#expected.push({ frame, fill });
  }

  /** The frame was never published. */
  forget(frame: Buffer): void {
    this.#expected = this.#expected.filter((expected) => expected.frame !== frame);
  }

  recognise(raw: Buffer): OwnFill<Value> | undefined {
    if (!this.#expected[0]?.frame.equals(raw)) return undefined;
    return this.#expected.shift()!.fill;
  }

  /** Frames were lost, so what comes next is not what was expected next. */
  clear(): void {
    this.#expected = [];
  }
}
