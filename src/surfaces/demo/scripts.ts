import { defineScript } from "../../kernel/redis/index.ts";

const file = (name: string) => new URL(`./scripts/${name}.lua`, import.meta.url);

export const age = defineScript({
  name: "demo.age",
  file: file("age"),
  keys: [],
  args: ["milliseconds"],
  idempotent: false,
  reply: (gone: number) => gone,
});

export const takeAll = defineScript({
  name: "demo.take_all",
  file: file("take_all"),
  keys: ["delayed", "hot", "queued", "running"],
  args: ["now", "done"],
  idempotent: false,
  reply: (entries: readonly string[]) => entries,
});
