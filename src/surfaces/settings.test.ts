import { expect, test } from "vitest";
import { allSettings, houseSettings, loadSettings, redisAddress } from "./settings.ts";

test("every form of REDIS_URL is understood", () => {
  expect(redisAddress("rediss://u:p@h:1/2")).toEqual({ kind: "url", url: "rediss://u:p@h:1/2" });
  expect(redisAddress("unix:///run/redis.sock")).toEqual({ kind: "socket", path: "/run/redis.sock" });
  expect(redisAddress("sentinel://me:p%40ss@a:26379,b:26380,c/main/3")).toEqual({
    kind: "sentinel",
    sentinels: [
      { host: "a", port: 26379 },
      { host: "b", port: 26380 },
      { host: "c", port: 26379 },
    ],
    master: "main",
    username: "me",
    password: "p@ss",
    db: 3,
  });
});

test("an address that cannot be right is refused with the variable's name and never shown", () => {
  const load = (environment: Record<string, string>) => () => loadSettings(environment, "/nonexistent");
  expect(load({ REDIS_URL: "http://secret" })).toThrow(/REDIS_URL=\(hidden\).*must begin with redis:/);
  expect(load({ REDIS_URL: "sentinel://a:26379" })).toThrow(/REDIS_URL.*master's name/);
  expect(load({ REDIS_URL: "no address" })).toThrow(/REDIS_URL.*is not a URL/);
  expect(load({ DATABASE_URL: "mysql://x" })).toThrow(/DATABASE_URL.*postgres:/);
  expect(load({ CARILLON_INSTANCE: "a/b" })).toThrow(/CARILLON_INSTANCE/);
  expect(load({ CARILLON_STATISTICS_TZ: "+02:00" })).toThrow(/CARILLON_STATISTICS_TZ.*IANA/);
});

test("every setting has its own variable and says what it means", () => {
  const all = allSettings();
  expect(new Set(all.map(({ env }) => env)).size).toBe(all.length);
  for (const { env, doc } of all) expect(doc.length, env).toBeGreaterThan(10);
  expect(loadSettings({}, "/nonexistent").get(houseSettings.dataDir)).toBe(".carillon");
});
