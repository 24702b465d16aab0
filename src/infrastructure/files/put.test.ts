import { Readable } from "node:stream";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { dieAtEveryCommand } from "../../../test/harness/chaos.ts";
import { eventually } from "../../../test/harness/facts.ts";
import type { Clock } from "../../kernel/clock.ts";
import { type ObjectStore, readAll } from "../../providers/object-store.ts";
import { FaultyObjectStore } from "../../sandbox/object-store-faults.ts";
import { errors } from "./errors.ts";
import { asPicture, doomed, openTestFiles, type TestFiles } from "./files.fixture.ts";
import { keys } from "./keys.ts";
import { protectionOf } from "./purgatory.ts";
import { putFile } from "./put.ts";

let files: TestFiles;
beforeAll(async () => {
  files = await openTestFiles();
});
beforeEach(() => files.reset());
afterAll(() => files?.close());

const plan = {
  purpose: "image_export",
  contentType: "image/webp",
  keyPrefix: "s3_files/images/exports/crl_x",
} as const;

/** A store whose puts arrive only when the test says so. */
function slowStore(store: ObjectStore) {
  let begun!: () => void;
  let finish!: () => void;
  const started = new Promise<void>((resolve) => {
    begun = resolve;
  });
  const released = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const slow: ObjectStore = {
    bucket: store.bucket,
    async put(key, content, options) {
      begun();
      await released;
      await store.put(key, content, options);
    },
    get: (key, range) => store.get(key, range),
    head: (key) => store.head(key),
    delete: (key) => store.delete(key),
    list: (prefix) => store.list(prefix),
  };
  return { slow, started, finish };
}

describe("putting a file", () => {
  test("stores the object, writes its row and leaves nothing in the purgatory", async () => {
    const ctx = files.process();
    const file = await putFile(ctx, Buffer.from("picture"), { ...plan, extension: ".webp" });
    expect(file.key).toMatch(/^s3_files\/images\/exports\/crl_x\/[\w-]{22}\.webp$/);
    expect(file.uid).toMatch(/^crl_s3f_/);
    expect(await files.rows()).toMatchObject([
      { uid: file.uid, bucket: "carillon", key: file.key, file_size: 7, content_type: "image/webp" },
    ]);
    expect((await readAll(await files.store.get(file.key))).toString()).toBe("picture");
    expect(await files.members()).toEqual([]);
  });

  test("counts a stream's bytes, and never uses a key twice", async () => {
    const ctx = files.process();
    const first = await putFile(ctx, Readable.from([Buffer.from("abc"), Buffer.from("de")]), plan);
    const second = await putFile(ctx, Buffer.from("abcde"), plan);
    expect(first.fileSize).toBe(5);
    expect(second.key).not.toBe(first.key);
    expect(await files.mismatches()).toEqual([]);
  });

  test("protects the key before the first byte is sent, for as long as its purpose says", async () => {
    const { slow, started, finish } = slowStore(files.store);
    const putting = putFile(files.process({ objectStore: slow }), Buffer.from("x"), plan);
    await started;
    const [member, score] = await files.house.redis.commands.zrange(keys.purgatory(), 0, "-1", "WITHSCORES");
    expect(member).toMatch(/^\{"bucket":"carillon","key":"s3_files\/images\/exports\/crl_x\/[\w-]{22}"\}$/);
    expect(Number(score)).toBe(files.clock.now() + 600);
    finish();
    await putting;
  });

  test("an upload that is still running at 80 % of its protection is protected longer", async () => {
    const { slow, started, finish } = slowStore(files.store);
    const begun = files.clock.now();
    const putting = putFile(files.process({ objectStore: slow }), Buffer.from("x"), plan);
    await started;
    const due = async () =>
      Number((await files.house.redis.commands.zrange(keys.purgatory(), 0, "-1", "WITHSCORES"))[1]);
    await files.clock.advance(479);
    expect(await due()).toBe(begun + 600);
    await files.clock.advance(2);
    await eventually(async () => (await due()) >= begun + 480 + 600, "the first renewal");
    await eventually(() => files.clock.sleeping === 1, "the upload waits for its next renewal");
    await files.clock.advance(480);
    await eventually(async () => (await due()) >= begun + 960 + 600, "the second renewal");
    await files.sweep(files.process());
    finish();
    await putting;
    expect(await files.mismatches()).toEqual([]);
    expect(await files.rows()).toHaveLength(1);
  });

  test("an upload that was not renewed in time and met the sweep ends with swept_during_upload and no row", async () => {
    const { slow, started, finish } = slowStore(files.store);
    // A process that stands still: its timers never fire, but the time of day goes on.
    const frozen: Clock = { ...bound(files.clock), sleep: () => new Promise(() => {}) };
    const putting = putFile(files.process({ objectStore: slow, clock: frozen }), Buffer.from("x"), {
      ...plan,
      references: asPicture,
    });
    const outcome = expect(putting).rejects.toSatisfy(errors.swept_during_upload.matches);
    await started;
    await files.clock.advance(601);
    const sweeper = files.process();
    await files.sweep(sweeper);
    expect(sweeper.alerts.identifiers()).toEqual(["files:upload_timed_out"]);
    finish();
    await outcome;
    expect(await files.rows()).toEqual([]);
    await files.sweep(files.process());
    expect(await files.objects()).toEqual([]);
    expect(await files.members()).toEqual([]);
  });

  test("an upload that the sweep takes after its row was written takes the row back", async () => {
    const ctx = files.process();
    const references = {
      ...asPicture,
      async add(...[tx, file]: Parameters<typeof asPicture.add>) {
        await asPicture.add(tx, file);
        await files.house.redis.commands.zrem(keys.purgatory(), protectionOf(file));
      },
    };
    await expect(putFile(ctx, Buffer.from("x"), { ...plan, references })).rejects.toSatisfy(
      errors.swept_during_upload.matches,
    );
    expect(await files.rows()).toEqual([]);
    await files.sweep(files.process());
    expect(await files.objects()).toEqual([]);
  });

  test("a refusal by the rows that refer to it removes the object at once", async () => {
    const references = {
      add: async () => {
        throw errors.part_already_uploaded();
      },
      remove: async () => {},
    };
    await expect(putFile(files.process(), Buffer.from("x"), { ...plan, references })).rejects.toSatisfy(
      errors.part_already_uploaded.matches,
    );
    expect(await files.objects()).toEqual([]);
    expect(await files.members()).toEqual([]);
    expect(await files.rows()).toEqual([]);
  });

  test("an object that the store cut is never recorded", async () => {
    const faulty = new FaultyObjectStore(files.store, { clock: files.clock, seed: 1, knobs: { truncated: 1 } });
    await expect(putFile(files.process({ objectStore: faulty }), Buffer.from("whole"), plan)).rejects.toSatisfy(
      errors.file_store_unavailable.matches,
    );
    expect(await files.rows()).toEqual([]);
    await files.clock.advance(601);
    await files.sweep(files.process());
    expect(await files.objects()).toEqual([]);
  });
});

describe("deaths while putting", () => {
  test("at every Redis command, before it or after it: each object has a row or is gone", async () => {
    const deaths = await dieAtEveryCommand(files.house.server, {
      prepare: () => files.reset(),
      life: async (connection) => {
        await putFile(files.process({ redis: connection }), Buffer.from("x"), plan);
      },
      afterlife: async () => {
        await files.clock.advance(601);
        await files.sweep(files.process());
        expect(await files.mismatches()).toEqual([]);
        expect(await files.members()).toEqual([]);
        expect(await files.brokenInvariants()).toEqual([]);
      },
    });
    expect(deaths).toBeGreaterThanOrEqual(4);
  });

  test("300 uploads killed at a random step leave objects with rows only, and only the two known warnings", async () => {
    const random = seeded(16);
    let died = 0;
    for (let index = 0; index < 300; index++) {
      const ctx = doomed(files.process({ redis: files.house.redis }), {
        dieAt: 1 + Math.floor(random() * 6),
        death: random() < 0.5 ? "before" : "after",
      });
      const references = random() < 0.5 ? asPicture : undefined;
      await putFile(ctx, Buffer.from(`content ${index}`), { ...plan, references }).catch(() => {
        died += 1;
      });
    }
    expect(died).toBeGreaterThan(200);
    await files.clock.advance(601);
    const sweeper = files.process();
    await files.sweep(sweeper);
    expect(await files.members()).toEqual([]);
    expect(await files.beingSwept()).toEqual([]);
    expect(await files.mismatches()).toEqual([]);
    expect(new Set(sweeper.alerts.identifiers())).toEqual(new Set(["files:upload_timed_out", "files:in_use"]));
    expect(sweeper.alerts.recorded.filter(({ level }) => level === "urgent")).toEqual([]);
    expect((await files.rows()).length).toBeGreaterThan(30);
    expect(await files.brokenInvariants()).toEqual([]);
  });

  test("a store with every fault at once loses nothing that was recorded and leaves nothing that was not", async () => {
    const faulty = new FaultyObjectStore(files.store, {
      clock: files.clock,
      seed: 30,
      knobs: {
        failures: {
          put: { rate: 0.15, fault: "SlowDown" },
          head: { rate: 0.1, fault: "Timeout" },
          delete: { rate: 0.3, fault: "InternalError" },
        },
        truncated: 0.1,
        replyLost: 0.15,
      },
    });
    const ctx = files.process({ objectStore: faulty });
    let stored = 0;
    for (let index = 0; index < 120; index++)
      await putFile(ctx, Buffer.from(`content ${index}`), plan).then(
        () => {
          stored += 1;
        },
        () => {},
      );
    expect(faulty.injected).toBeGreaterThan(20);
    for (let round = 0; round < 20 && (await files.members()).length > 0; round++) {
      await files.clock.advance(601);
      await files.sweep(ctx);
    }
    expect(await files.members()).toEqual([]);
    expect(await files.mismatches()).toEqual([]);
    expect(await files.rows()).toHaveLength(stored);
    expect(await files.brokenInvariants()).toEqual([]);
  });
});

function bound(clock: Clock): Clock {
  return {
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    sleep: (seconds, signal) => clock.sleep(seconds, signal),
    every: (seconds, tick) => clock.every(seconds, tick),
  };
}

function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}
