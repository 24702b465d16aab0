export { isConnectionLoss, openRedis, type RedisAddress, RedisConnection } from "./connection.ts";
export { findRedisServer, type RedisServer, startRedisServer } from "./managed.ts";
export { declaredScripts, defineScript, type Script, type ScriptArgument, scriptFileName } from "./script.ts";
export { type MessageHandler, Subscriber } from "./subscriber.ts";
