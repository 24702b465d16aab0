import { isIP } from "node:net";
import { z } from "zod";
import { settings as kinds } from "../../kernel/config.ts";

const Origin = z.string().refine((value) => URL.canParse(value) && new URL(value).origin === value, {
  message: "must be an origin such as https://app.example.com, without a path",
});

const NAMED_NETWORKS = ["loopback", "linklocal", "uniquelocal"];
const Network = z.string().refine(
  (value) => {
    if (NAMED_NETWORKS.includes(value)) return true;
    const [address = "", bits, ...rest] = value.split("/");
    const widest = isIP(address) === 6 ? 128 : 32;
    return isIP(address) > 0 && rest.length === 0 && (bits === undefined || (/^\d+$/.test(bits) && +bits <= widest));
  },
  { message: `must be an address, a network such as 10.0.0.0/8, or one of ${NAMED_NETWORKS.join(", ")}` },
);

export const settings = {
  host: kinds.text("http.host", { default: "127.0.0.1", doc: "The address that the server listens on." }),
  port: kinds.integer("http.port", {
    default: 8787,
    min: 0,
    max: 65_535,
    doc: "The port that the server listens on; 0 takes any free one.",
  }),
  allowedOrigins: kinds.listOf("http.allowedOrigins", Origin, {
    default: [],
    doc: "Origins of web pages that may call /api/1 with an Authorization header. Cookies stay same-origin.",
  }),
  trustedProxies: kinds.listOf("http.trustedProxies", Network, {
    default: [],
    doc: "Proxies whose X-Forwarded-For is believed; from everyone else the socket's address counts.",
  }),
  bodyLimit: kinds.integer("http.bodyLimit", {
    default: 1_048_576,
    min: 1_024,
    unit: "bytes",
    doc: "The longest body that a route takes unless it says otherwise.",
  }),
  metricsToken: kinds.optionalText("metrics.token", {
    doc: "Bearer token that /metrics asks for. Unset: /metrics answers only on this machine.",
    secret: true,
  }),
};
