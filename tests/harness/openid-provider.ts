// OpenID providers on loopback: an unmodified `oidc-provider` with a person who fills in its forms, and a hostile
// provider whose documents and ID tokens a test writes.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after } from 'node:test';
import { exportJWK, generateKeyPair, type JWK, type JWTPayload, SignJWT } from 'jose';
import { type HttpResult, sendRequest } from './http.ts';

export const CLIENT = { id: 'shop', secret: 'the secret of the client' } as const;
const HOPS_MAX = 12;

async function listenOnLoopback(server: Server): Promise<string> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  after(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Settings with which the server of a test can reach the providers. */
export const settingsToReach = (...urls: readonly string[]): Record<string, string> => ({
  BERTH_EGRESS_ALLOW: urls.map(url => new URL(url).host).join(','),
});

export interface OpenIdProvider {
  readonly issuer: string;
  /** Registers an address to which the provider redirects browsers. */
  readonly register: (redirectUri: string) => Promise<void>;
}

/** Starts `oidc-provider` with its own pages for signing in and consent. */
export async function startOpenIdProvider(): Promise<OpenIdProvider> {
  const { default: Provider } = await import('oidc-provider');
  const server = createServer();
  const issuer = await listenOnLoopback(server);
  return {
    issuer,
    register: async redirectUri => {
      const provider = new Provider(issuer, {
        clients: [{ client_id: CLIENT.id, client_secret: CLIENT.secret, redirect_uris: [redirectUri] }],
        pkce: { required: () => true },
        features: { devInteractions: { enabled: true } },
      });
      server.on('request', provider.callback());
    },
  };
}

/**
 * An HTTP client that acts as a browser: it keeps cookies, follows redirects, and answers the forms of `oidc-provider`.
 */
export class PlainBrowser {
  readonly #cookies = new Map<string, string>();

  /** Signs in. Returns the address of the first redirect that leaves the provider. */
  async signIn(authorizationUrl: string, login: string, ownOrigins: readonly string[]): Promise<string> {
    let url = authorizationUrl;
    for (let hop = 0; hop < HOPS_MAX; hop += 1) {
      const { headers, text, status } = await this.#send('GET', url);
      const location = headers.location;
      if (location === undefined) {
        assert.equal(status, 200, text);
        url = await this.#submitForm(url, text, login);
      } else url = new URL(location, url).href;
      if (!ownOrigins.includes(new URL(url).origin)) return url;
    }
    return assert.fail(`the sign-in did not leave the provider after ${HOPS_MAX} redirects; the last URL is ${url}`);
  }

  async #submitForm(url: string, page: string, login: string): Promise<string> {
    const prompt = /name="prompt" value="(\w+)"/.exec(page)?.[1] ?? assert.fail(page);
    const action = /action="([^"]+)"/.exec(page)?.[1] ?? url;
    const form = new URLSearchParams({ prompt, ...(prompt === 'login' ? { login, password: 'any' } : {}) });
    const { headers, text } = await this.#send('POST', new URL(action, url).href, form.toString());
    return new URL(headers.location ?? assert.fail(text), url).href;
  }

  async #send(method: string, url: string, body?: string): Promise<HttpResult> {
    const cookie = [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const response = await sendRequest(url, {
      ...{ method, body },
      headers: {
        ...(cookie ? { cookie } : {}),
        ...(body ? { 'content-type': 'application/x-www-form-urlencoded' } : {}),
      },
    });
    for (const set of response.headers['set-cookie'] ?? []) {
      const [pair = ''] = set.split(';', 1);
      const at = pair.indexOf('=');
      this.#cookies.set(pair.slice(0, at), pair.slice(at + 1));
    }
    return response;
  }
}

/** A provider whose responses a test determines. */
export class HostileProvider {
  readonly issuer: string;
  /** Members that replace those of the discovery document. */
  document: Readonly<Record<string, unknown>> = {};
  /** Creates the ID token for the requested nonce. */
  idToken: (nonce: string) => Promise<string> = nonce => this.sign(this.claims(nonce));
  /** How far the provider's clock is ahead, in seconds, for a server whose clock was advanced by a test. */
  aheadSeconds = 0;
  /** Further keys of the key set. */
  extraKeys: readonly JWK[] = [];
  /** The number of requests for the keys so far. */
  keyRequestCount = 0;
  #keyPair = generateKeyPair('ES256', { extractable: true });
  #kid = 'first';

  private constructor(server: Server, issuer: string) {
    this.issuer = issuer;
    server.on('request', (request, response) => {
      const json = (body: unknown): void => {
        response.setHeader('content-type', 'application/json');
        response.end(JSON.stringify(body));
      };
      const path = request.url ?? '';
      if (path === '/.well-known/openid-configuration') json({ ...this.#document(), ...this.document });
      else if (path === '/keys') void this.#keySet().then(json);
      else if (path === '/token') void this.#sendToken(request, json);
      else response.writeHead(404).end();
    });
  }

  static async open(): Promise<HostileProvider> {
    const server = createServer();
    return new HostileProvider(server, await listenOnLoopback(server));
  }

  /** The nonce of the current sign-in. */
  nonce = '';

  claims(nonce: string): JWTPayload {
    const now = Math.floor(Date.now() / 1000) + this.aheadSeconds;
    return { iss: this.issuer, aud: CLIENT.id, sub: 'kim', nonce, iat: now, exp: now + 300 };
  }

  async sign(claims: JWTPayload, header: Readonly<Record<string, unknown>> = {}): Promise<string> {
    const { privateKey } = await this.#keyPair;
    return new SignJWT(claims).setProtectedHeader({ alg: 'ES256', kid: this.#kid, ...header }).sign(privateKey);
  }

  rotate(): void {
    this.#keyPair = generateKeyPair('ES256', { extractable: true });
    this.#kid = 'second';
  }

  async publicKeyText(): Promise<string> {
    return JSON.stringify(await exportJWK((await this.#keyPair).publicKey));
  }

  #document() {
    return {
      issuer: this.issuer,
      authorization_endpoint: `${this.issuer}/authorize`,
      token_endpoint: `${this.issuer}/token`,
      jwks_uri: `${this.issuer}/keys`,
      id_token_signing_alg_values_supported: ['ES256', 'HS256', 'none'],
    };
  }

  async #keySet() {
    this.keyRequestCount += 1;
    const key = await exportJWK((await this.#keyPair).publicKey);
    return { keys: [{ ...key, kid: this.#kid, use: 'sig', alg: 'ES256' }, ...this.extraKeys] };
  }

  async #sendToken(_request: unknown, json: (body: unknown) => void): Promise<void> {
    json({ access_token: 'access', token_type: 'Bearer', id_token: await this.idToken(this.nonce) });
  }
}
