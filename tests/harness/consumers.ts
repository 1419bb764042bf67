// End users of the first application of a server, without a browser. They send the same requests as the sign-in page
// and the application.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import type {
  ConsumerTokens,
  HostedSignInResult,
  ReplaceIdentity,
  StartedConsumerSession,
} from '../../contract/consumers.ts';
import type { EmailCodeSent } from '../../contract/sign-in.ts';
import type { HttpResult } from './http.ts';
import { stepUp } from './members.ts';
import type { Person } from './person.ts';
import type { TestServer } from './server.ts';

export const REDIRECT_URI = 'https://shop.example/signed-in';
export const SHOP_ORIGIN = 'https://shop.example';

const START_LIMIT_WINDOW_MS = 61_000;

export interface StartedSignIn {
  readonly startResult: StartedConsumerSession;
  readonly verifier: string;
  readonly state: string;
  /** The id of the sign-in, from the address of the sign-in page of `hosted`. */
  readonly signIn: string;
}

export const challengeOf = (verifier: string): string => createHash('sha256').update(verifier).digest('base64url');

export class ConsumerFixture {
  readonly server: TestServer;
  readonly owner: Person;
  readonly appId: string;
  #startCount = 0;

  private constructor(server: TestServer, owner: Person, appId: string) {
    this.server = server;
    this.owner = owner;
    this.appId = appId;
  }

  /** Lets consumers sign in to the application with every hosted method, and returns the fixture. */
  static async open(server: TestServer, owner: Person, appId = server.applicationId): Promise<ConsumerFixture> {
    const fixture = new ConsumerFixture(server, owner, appId);
    await fixture.configure({});
    return fixture;
  }

  async configure(overrides: ReplaceIdentity): Promise<void> {
    const identity: ReplaceIdentity = {
      hosted: { methods: ['passkey', 'email_code', 'password'], registration: 'open' },
      ...{ origins: [SHOP_ORIGIN], redirectUris: [REDIRECT_URI] },
      ...overrides,
    };
    const path = `/v1/applications/${this.appId}/identity`;
    const { status, text } = await this.owner.send('PUT', path, identity, { 'if-match': '*' });
    assert.equal(status, 200, text);
  }

  /** Sends a command as a program does, with or without a token. */
  send<Body = unknown>(
    name: string,
    body: object = {},
    token?: string,
    { provider = 'hosted', headers = {} }: { provider?: string; headers?: Readonly<Record<string, string>> } = {},
  ): Promise<HttpResult<Body>> {
    const path = `/v1/consumer/applications/${this.appId}/providers/${provider}/${name}`;
    return this.server.api<Body>('POST', path, { key: token ?? null, body, headers });
  }

  /** Sends a command as a page of Berth does. */
  sendFromPage<Body = unknown>(name: string, body: object = {}, headers: Readonly<Record<string, string>> = {}) {
    return this.send<Body>(name, body, undefined, { headers: { origin: this.server.url, ...headers } });
  }

  /** Starts a sign-in. Starts are limited, so a test file that signs in often needs a server with the test clock. */
  async startSignIn(overrides: object = {}, provider = 'hosted'): Promise<StartedSignIn> {
    const [verifier, state] = [randomBytes(32).toString('base64url'), randomBytes(8).toString('hex')];
    const startBody = { redirectUri: REDIRECT_URI, codeChallenge: challengeOf(verifier), state, ...overrides };
    this.#startCount += 1;
    // Starts are limited per client address. Each start therefore has a different address, if the server trusts the
    // test as its proxy.
    const headers = { 'x-forwarded-for': `192.0.2.${this.#startCount % 256}` };
    const start = () => this.send<StartedConsumerSession>('session.start', startBody, undefined, { provider, headers });
    let { status, body, text } = await start();
    if (status === 429) {
      await this.server.advance(START_LIMIT_WINDOW_MS);
      ({ status, body, text } = await start());
    }
    assert.equal(status, 200, text);
    return { startResult: body, verifier, state, signIn: body.authorizationUrl.split('/').at(-1) ?? '' };
  }

  /** Completes the sign-in with a code by e-mail. Returns the address that the browser is redirected to. */
  async finish({ signIn }: StartedSignIn, email: string): Promise<string> {
    const codeResponse = await this.sendFromPage<EmailCodeSent>('hosted.code', { signIn, email });
    assert.equal(codeResponse.status, 202, codeResponse.text);
    const code = await this.codeMailedTo(email);
    const { status, body, text } = await this.sendFromPage<HostedSignInResult>('hosted.verify', {
      ...{ signIn, ticket: codeResponse.body.ticket, code },
    });
    assert.equal(status, 200, text);
    return body.redirectTo;
  }

  exchange({ verifier }: Pick<StartedSignIn, 'verifier'>, redirectTo: string, provider = 'hosted') {
    const code = new URL(redirectTo).searchParams.get('code');
    const body = { code, codeVerifier: verifier, redirectUri: REDIRECT_URI };
    return this.send<ConsumerTokens>('session.exchange', body, undefined, { provider });
  }

  /** Signs in with a code by e-mail, and returns the tokens of the consumer. */
  async signIn(
    email: string,
  ): Promise<ConsumerTokens & { readonly accessToken: string; readonly refreshToken: string }> {
    const startedSignIn = await this.startSignIn();
    const { status, body, text } = await this.exchange(startedSignIn, await this.finish(startedSignIn, email));
    assert.equal(status, 200, text);
    const { accessToken = assert.fail(text), refreshToken = assert.fail(text) } = body;
    return { ...body, accessToken, refreshToken };
  }

  /** Returns the newest code that was e-mailed to the address. */
  codeMailedTo(to: string): Promise<string> {
    return readMailedCode(this.owner, to);
  }
}

/** Reads the e-mails in the outbox as the operator, and returns the newest code that was sent to the address. */
export async function readMailedCode(operator: Person, to: string): Promise<string> {
  const read = () => operator.get<{ data: ReadonlyArray<{ to: string; text: string }> }>('/v1/operator/mails');
  let { status, body, text } = await read();
  if (status === 401) {
    await stepUp(operator);
    ({ status, body, text } = await read());
  }
  assert.equal(status, 200, text);
  const mail = body.data.find(one => one.to === to.toLowerCase());
  const code = /Your code is (\d{6})/.exec(mail?.text ?? '')?.[1];
  return code ?? assert.fail(`no code was e-mailed to ${to}; the outbox contains: ${text}`);
}
