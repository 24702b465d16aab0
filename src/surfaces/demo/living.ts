import { sandboxOf } from "../../infrastructure/sandbox/service.ts";
import type { Context } from "../../jobs/context.ts";
import type { KnobPatch } from "../../sandbox/knobs.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import { seededRandom } from "../../sandbox/seeded-random.ts";
import { createDemoApp, FOUNDERS } from "./app.ts";
import { Crowd } from "./crowd.ts";
import { whyNoDemo } from "./permission.ts";
import { settings } from "./settings.ts";
import { LIVE } from "./tempo.ts";
import { APP } from "./touch-points.ts";

/** Seconds from one look of the crowd to the next. */
const STEP = 5;
/** Once in so many steps on average a provider has a bad minute. */
const STEPS_BETWEEN_HICCUPS = 240;
const HICCUP_SECONDS = 60;

export interface LivingDemo {
  /** What to tell the person who started the house. */
  readonly lines: readonly string[];
  readonly crowd: Crowd;
  stop(): Promise<void>;
}

/**
 * The demo of a running house: makes its app if the database is empty, then lets a quiet crowd live in it until the process
 * ends. There is none where the settings are against it, nor where the database is somebody else's.
 */
export async function startDemo(
  ctx: Context,
  options: { readonly founders?: number } = {},
): Promise<LivingDemo | undefined> {
  if (whyNoDemo(ctx.config) !== undefined) return undefined;
  const app = await createDemoApp(ctx, options.founders ?? FOUNDERS);
  if (!app) return undefined;
  const sandbox = sandboxOf(ctx);
  // What follows from the time of the start differs from start to start, and yet is no accident.
  const random = seededRandom(Math.floor(ctx.clock.now()));
  const crowd = new Crowd({ ctx, sandbox }, { people: app.people, random, tempo: LIVE });
  crowd.beginLively();
  const weather = new Weather(sandbox, ctx, random);
  let underWay: Promise<void> = Promise.resolve();
  const end = ctx.clock.every(STEP, () => {
    weather.turn();
    underWay = crowd.step();
    return underWay;
  });
  return {
    crowd,
    lines: [
      `This is a demo: ${APP}, with ${app.people.length} made-up people. Nobody real is reached.`,
      `They receive, click, join and leave by themselves. To turn it off: ${settings.demo.env}=off.`,
    ],
    async stop() {
      end();
      crowd.leave();
      weather.calm();
      await underWay;
    },
  };
}

const HICCUPS: readonly { readonly bad: KnobPatch; readonly calm: KnobPatch }[] = [
  { bad: { expo: { errorRate: 0.5 } }, calm: { expo: { errorRate: 0 } } },
  { bad: { twilio: { errorRate: 0.5 } }, calm: { twilio: { errorRate: 0 } } },
  { bad: { ses: { error_rate: 0.5 } }, calm: { ses: { error_rate: 0 } } },
];

/** Now and then one provider answers badly for a minute, unless somebody plays with its knobs. */
class Weather {
  readonly #sandbox: Sandbox;
  readonly #ctx: Pick<Context, "clock">;
  readonly #random: () => number;
  #until = 0;
  #now: (typeof HICCUPS)[number] | undefined;

  constructor(sandbox: Sandbox, ctx: Pick<Context, "clock">, random: () => number) {
    this.#sandbox = sandbox;
    this.#ctx = ctx;
    this.#random = random;
  }

  turn(): void {
    const now = this.#ctx.clock.now();
    if (this.#now && now >= this.#until) this.calm();
    if (this.#now || this.#random() >= 1 / STEPS_BETWEEN_HICCUPS) return;
    const { expo, twilio, ses } = this.#sandbox.knobs;
    if (expo.errorRate + twilio.errorRate + ses.error_rate > 0) return;
    this.#now = HICCUPS[Math.floor(this.#random() * HICCUPS.length)]!;
    this.#until = now + HICCUP_SECONDS;
    this.#sandbox.knobs.patch(this.#now.bad);
  }

  calm(): void {
    if (this.#now) this.#sandbox.knobs.patch(this.#now.calm);
    this.#now = undefined;
  }
}
