import { expect, test } from "vitest";
import { publicUrl } from "../messaging/email_templates/service.ts";
import { linkSettings } from "../messaging/links/service.ts";
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

test("links lead to the port that the server listens on, unless somebody says where they lead", () => {
  const load = (environment: Record<string, string>) => {
    const config = loadSettings(environment, "/nonexistent");
    return [config.get(linkSettings.webRoot), config.get(publicUrl)];
  };
  const usual = "http://127.0.0.1:8787";
  expect(load({})).toEqual([usual, usual]);
  expect(load({ CARILLON_HTTP_PORT: "0" })).toEqual([usual, usual]);
  expect(load({ CARILLON_HTTP_PORT: "3000" })).toEqual(["http://127.0.0.1:3000", "http://127.0.0.1:3000"]);
  const chosen = { CARILLON_HTTP_PORT: "3000", CARILLON_LINKS_WEB_ROOT: "https://example.com" };
  expect(load(chosen)).toEqual(["https://example.com", "http://127.0.0.1:3000"]);
});
