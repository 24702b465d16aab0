import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { issueSignInLink } from "../../src/infrastructure/access/service.ts";
import { silentLog } from "../../src/kernel/log.ts";
import { type House, openHouse } from "../../src/surfaces/house.ts";
import { loadSettings } from "../../src/surfaces/settings.ts";
import { eventually } from "../harness/facts.ts";
import { startTestRedis } from "../harness/redis.ts";
import { furnishDatabase } from "../harness/sql.ts";

// The scripts are plain JavaScript without types: they run before any package is there.
const script = (name: string) => import(new URL(`../../scripts/${name}.js`, import.meta.url).href);

export interface VisitOptions {
  readonly width?: number;
  readonly height?: number;
  /** What the visitor prefers; null: nothing is said, so that frames follow what the page says. */
  readonly colorScheme?: "light" | "dark" | null;
  /** Signed in, unless this is false. */
  readonly signedIn?: boolean;
}

/** A page in a browser, and what went wrong in it so far. */
export interface Visit {
  readonly page: Page;
  readonly context: BrowserContext;
  /** What the console complained about, exceptions, and answers that were not meant to be; taken, it starts anew. */
  takeFaults(): string[];
  /** Goes to an address below `/admin` and waits until the page shows what it has. */
  open(path: string): Promise<void>;
}

/** A whole installation with its pages, on a free port of this machine, and one browser for the file. */
export interface Stage {
  readonly house: House;
  readonly url: string;
  readonly browser: Browser;
  signInLink(): Promise<string>;
  visit(options?: VisitOptions): Promise<Visit>;
  close(): Promise<void>;
}

/** As a person's browser calls itself: one without a window says so, and its clicks are a robot's. */
export const PERSON =
  "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36";

/** A timezone in which it is about noon, so that no day ends while somebody looks at its numbers. */
function zoneAtNoon(): string {
  const ahead = 12 - new Date().getUTCHours();
  // The names of these zones count the hours behind.
  return `Etc/GMT${ahead > 0 ? "-" : "+"}${Math.abs(ahead)}`;
}

/** A port that nobody has at this moment, for whoever must know it before the server has it. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

export async function openStage(settings: Readonly<Record<string, string>> = {}): Promise<Stage> {
  await (await script("pages")).buildPages();
  const executablePath = (await (await script("chromium")).prepareChromium()) as string;
  const folder = mkdtempSync(join(tmpdir(), "carillon-browser-"));
  furnishDatabase(join(folder, "sql"));
  const redis = await startTestRedis();
  const environment = {
    REDIS_URL: `unix://${redis.server.socketPath}`,
    CARILLON_DATA_DIR: folder,
    CARILLON_HTTP_PORT: "0",
    CARILLON_SANDBOX_PORT: "0",
    CARILLON_SANDBOX_SMTP_PORT: "0",
    CARILLON_STATISTICS_TZ: zoneAtNoon(),
    ...settings,
  };
  const roles = { web: true, worker: true };
  const house = await openHouse({ config: loadSettings(environment, folder), roles, log: silentLog });
  const url = house.url!;
  // Containers rarely let a browser make the namespaces of its own sandbox; nothing foreign is opened here.
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
  const signInLink = async () => (await issueSignInLink(house.ctx, { label: "browser test" })).url;
  // One session for all visits: signing in is proven by its own tests.
  let state: Awaited<ReturnType<BrowserContext["storageState"]>> | undefined;
  const stateOfSignedIn = async () => {
    if (state) return state;
    const context = await browser.newContext();
    const page = await context.newPage();
    await page.goto(await signInLink());
    await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
    state = await context.storageState();
    await context.close();
    return state;
  };
  return {
    house,
    url,
    browser,
    signInLink,
    async visit({ width = 1280, height = 900, colorScheme = "light", signedIn = true } = {}) {
      const storageState = signedIn ? await stateOfSignedIn() : undefined;
      const context = await browser.newContext({
        viewport: { width, height },
        colorScheme,
        storageState,
        locale: "en-US",
        userAgent: PERSON,
        reducedMotion: "reduce",
      });
      const page = await context.newPage();
      const faults = watch(page);
      return {
        page,
        context,
        takeFaults: () => faults.splice(0),
        open: async (path) => {
          await page.goto(`${url}/admin${path}`);
          await settled(page);
        },
      };
    },
    close: async () => {
      await browser.close();
      await house.close();
      await redis.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function watch(page: Page): string[] {
  const faults: string[] = [];
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") faults.push(`${message.type()}: ${message.text()}`);
  });
  page.on("pageerror", (error) => faults.push(`exception: ${error.message}`));
  page.on("response", (response) => {
    if (response.status() >= 500) faults.push(`${response.status()} ${response.url()}`);
  });
  return faults;
}

/** The page has its heading, and nothing holds the place of something else any more. */
export async function settled(page: Page): Promise<void> {
  await page.locator("#content h1").waitFor();
  const waiting = page.locator("#content .mantine-Skeleton-root, #content [aria-label=Loading]");
  await eventually(async () => (await waiting.count()) === 0, "everything that the page waits for");
}
