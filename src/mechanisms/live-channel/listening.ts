import { sequenceOf } from "./kind.ts";
import type { Room, RoomMessage } from "./room.ts";

/**
 * One socket's ear on one channel.
 *
 *   replaying --replay sent--> live --end or leave--> over
 *
 * It enters the room before the replay is read, so nothing falls between the two; what arrives meanwhile is held back,
 * and whatever the replay already had is dropped by its sequence number.
 */
export class Listening {
  readonly channel: string;
  readonly room: Room;
  readonly expiresAt: number;
  readonly #send: (text: string) => void;
  readonly #onEnd: () => void;
  readonly #opening: string;
  #mode: "replaying" | "live" | "over" = "replaying";
  #heldBack: RoomMessage[] = [];
  #lastSeq: number | undefined;

  constructor(plan: {
    channel: string;
    room: Room;
    expiresAt: number;
    since: number | undefined;
    send(text: string): void;
    onEnd(): void;
  }) {
    this.channel = plan.channel;
    this.room = plan.room;
    this.expiresAt = plan.expiresAt;
    this.#lastSeq = plan.since;
    this.#send = plan.send;
    this.#onEnd = plan.onEnd;
    this.#opening = `{"type":"event","channel":${JSON.stringify(plan.channel)},"data":`;
  }

  /** Enters the room, answers with the replay, then goes live. */
  async start(): Promise<void> {
    await this.room.enter(this.#hear);
    const { events, ended } = await this.room.kind.replay(this.room.name, this.#lastSeq);
    if (this.#mode === "over") return;
    const replay = events.filter((event) => this.#isNew(sequenceOf(this.room.kind, event)));
    this.#send(JSON.stringify({ type: "subscribed", channel: this.channel, replay }));
    this.#goLive();
    if (ended) this.#end();
  }

  /** Messages may have been lost: sends what the replay has since the last that was sent. */
  async catchUp(): Promise<void> {
    if (this.#mode !== "live") return;
    this.#mode = "replaying";
    const { events, ended } = await this.room.kind.replay(this.room.name, this.#lastSeq);
    if ((this.#mode as string) === "over") return;
    for (const event of events)
      if (this.#isNew(sequenceOf(this.room.kind, event), false))
        this.#send(`${this.#opening}${JSON.stringify(event)}}`);
    this.#goLive();
    if (ended) this.#end();
  }

  leave(): void {
    this.#mode = "over";
    this.#heldBack = [];
    this.room.leave(this.#hear);
  }

  readonly #hear = (message: RoomMessage): void => {
    if (this.#mode === "replaying") this.#heldBack.push(message);
    else if (this.#mode === "live") this.#pass(message);
  };

  #goLive(): void {
    this.#mode = "live";
    const heldBack = this.#heldBack;
    this.#heldBack = [];
    for (const message of heldBack) this.#hear(message);
  }

  #pass(message: RoomMessage): void {
    if (message.kind === "end") this.#end();
    else if (this.#isNew(message.seq)) this.#send(`${this.#opening}${message.json}}`);
  }

  #end(): void {
    if (this.#mode !== "over") this.#onEnd();
  }

  /** Notes a sequence number; false when it was passed already. Events without one count as new where that is safe. */
  #isNew(seq: number | undefined, withoutNumber = true): boolean {
    if (seq === undefined) return withoutNumber;
    if (this.#lastSeq !== undefined && seq <= this.#lastSeq) return false;
    this.#lastSeq = seq;
    return true;
  }
}
