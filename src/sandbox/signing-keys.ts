import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { type CryptoKey, exportJWK, generateKeyPair, type JWK, SignJWT } from "jose";

/** How the simulator misbehaves. */
export interface SigningKeyFaults {
  /** Answer this status instead of keys. */
  status?: number;
  /** Answer 200 with a body that holds no list of keys. */
  malformed?: boolean;
  /** Accept the request and never answer, until the fault is taken back. */
  slow?: boolean;
}

interface KeyPair {
  readonly kid: string;
  readonly privateKey: CryptoKey;
  readonly published: JWK;
}

export interface MintOptions {
  readonly claims?: Readonly<Record<string, unknown>>;
  /** Unix seconds; the token lives `lifetime` seconds from here. */
  readonly now: number;
  readonly lifetime?: number;
  /** Pretend to be signed by another key. */
  readonly kid?: string;
}

/**
 * Apple and a Cognito pool as far as signing keys go: both publish the same rotating keys on a loopback port, and tokens
 * of either can be minted. `rotate` publishes a new key and retires the one before the last.
 */
export class SigningKeySandbox {
  readonly faults: SigningKeyFaults = {};
  /** How often keys were asked for. */
  fetches = 0;
  readonly pool: string;
  readonly #server: Server;
  #pairs: KeyPair[] = [];
  #made = 0;
  #waiting: (() => void)[] = [];

  private constructor(server: Server, pool: string) {
    this.#server = server;
    this.pool = pool;
  }

  static async start(options: { pool?: string; port?: number } = {}): Promise<SigningKeySandbox> {
    const server = createServer();
    const sandbox = new SigningKeySandbox(server, options.pool ?? "us-west-2_sandbox");
    await sandbox.rotate();
    server.on("request", async (request, response) => {
      const paths = ["/auth/keys", `/${sandbox.pool}/.well-known/jwks.json`];
      if (request.method !== "GET" || !paths.includes(request.url ?? "")) return response.writeHead(404).end();
      sandbox.fetches += 1;
      if (sandbox.faults.slow) await new Promise<void>((resolve) => sandbox.#waiting.push(resolve));
      const { status, malformed } = sandbox.faults;
      if (status) return response.writeHead(status).end();
      const keys = sandbox.#pairs.map(({ published }) => published);
      response.writeHead(200, { "content-type": "application/json" });
      return response.end(JSON.stringify(malformed ? { kind: "keys", items: keys } : { keys }));
    });
    await new Promise<void>((resolve) => server.listen(options.port ?? 0, "127.0.0.1", resolve));
    return sandbox;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get cognitoIssuer(): string {
    return `${this.url}/${this.pool}`;
  }

  /** The id of the key that signs now. */
  get kid(): string {
    return this.#pairs[0]!.kid;
  }

  async rotate(): Promise<string> {
    const { privateKey, publicKey } = await generateKeyPair("RS256", { extractable: true });
    const kid = `sandbox-${++this.#made}`;
    const published = { ...(await exportJWK(publicKey)), kid, alg: "RS256", use: "sig" };
    this.#pairs = [{ kid, privateKey, published }, ...this.#pairs].slice(0, 2);
    return kid;
  }

  /** Changes what is published of the signing key, to see that unfit keys are refused. */
  publish(changes: Partial<JWK>): void {
    Object.assign(this.#pairs[0]!.published, changes);
  }

  mintApple(options: MintOptions & { readonly audience: string; readonly nonce: string }): Promise<string> {
    return this.#mint(options, {
      iss: "https://appleid.apple.com",
      aud: options.audience,
      sub: "001122.sandbox",
      nonce: options.nonce,
    });
  }

  mintCognito(options: MintOptions & { readonly client: string; readonly use?: "id" | "access" }): Promise<string> {
    const use = options.use ?? "id";
    const client = use === "id" ? { aud: options.client } : { client_id: options.client };
    return this.#mint(options, { iss: this.cognitoIssuer, sub: "sandbox-user", token_use: use, ...client });
  }

  /** Lets requests go that the fault `slow` holds back. */
  release(): void {
    this.faults.slow = false;
    for (const answer of this.#waiting.splice(0)) answer();
  }

  async close(): Promise<void> {
    this.release();
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #mint(options: MintOptions, claims: Record<string, unknown>): Promise<string> {
    const { kid, privateKey } = this.#pairs[0]!;
    return new SignJWT({ ...claims, ...options.claims })
      .setProtectedHeader({ alg: "RS256", kid: options.kid ?? kid })
      .setIssuedAt(Math.floor(options.now))
      .setExpirationTime(Math.floor(options.now) + (options.lifetime ?? 600))
      .sign(privateKey);
  }
}
