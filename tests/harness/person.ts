// A person without a browser. Sends requests as pages of the console do, with the cookie and the origin.
import assert from 'node:assert/strict';
import type { SignInResult } from '../../contract/sign-in.ts';
import type { HttpResult } from './http.ts';
import type { TestServer } from './server.ts';

export const PASSWORD = 'a long enough password';

export class Person {
  readonly #server: TestServer;
  /** The Cookie header. */
  cookie: string | undefined;

  constructor(server: TestServer) {
    this.#server = server;
  }

  /** The headers that a page of the console sends. */
  get headers(): Record<string, string> {
    return { origin: this.#server.url, ...(this.cookie ? { cookie: this.cookie } : {}) };
  }

  /** Sets up and signs in the owner, whose account was created at the first start of the server. */
  static async setUpOwner(server: TestServer, email = 'ada@example.com'): Promise<Person> {
    const person = new Person(server);
    const token = await createSetUpToken(server);
    const response = await person.post<SignInResult>('/v1/sign-in/setup', {
      ...{ token, name: 'Ada', email, password: PASSWORD },
    });
    assert.equal(response.status, 200, response.text);
    return person;
  }

  async signIn(email: string, password = PASSWORD): Promise<HttpResult<SignInResult>> {
    return this.post('/v1/sign-in/password', { email, password });
  }

  get = <Body = unknown>(path: string): Promise<HttpResult<Body>> => this.send('GET', path);

  post = <Body = unknown>(path: string, body: unknown = {}): Promise<HttpResult<Body>> => this.send('POST', path, body);

  async send<Body = unknown>(
    method: string,
    path: string,
    body?: unknown,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<HttpResult<Body>> {
    const response = await this.#server.api<Body>(method, path, {
      key: null,
      body,
      headers: { ...this.headers, ...headers },
    });
    for (const set of response.headers['set-cookie'] ?? []) this.cookie = set.split(';', 1)[0];
    return response;
  }
}

/** Returns the secret of a link that `berth accounts link` prints. */
export async function createSetUpToken(server: TestServer, ...options: string[]): Promise<string> {
  const { code, stdout, stderr } = await server.operate('accounts', 'link', '--json', ...options);
  assert.equal(code, 0, stderr);
  const { url }: { url: string } = JSON.parse(stdout);
  return new URL(url).hash.slice('#setup='.length);
}

/** Returns the newest code that was e-mailed to the address. */
export async function readMailedCode(server: TestServer, to: string): Promise<string> {
  const { stdout } = await server.operate('outbox', '--json');
  const mails: ReadonlyArray<{ to: string; text: string }> = JSON.parse(stdout);
  const code = /Your code is (\d{6})/.exec(mails.find(mail => mail.to === to)?.text ?? '')?.[1];
  assert.ok(code, `no code was mailed to ${to}: ${stdout}`);
  return code;
}
