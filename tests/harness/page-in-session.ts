// A page in the browser of a session, at the address of the service itself, with a person's cookie. Simulates an agent
// that made a person sign in to the service in its session.
import { CdpClient } from './cdp.ts';
import type { CreatedSession, TestServer } from './server.ts';

/**
 * Settings for a server that listens on the first of `ports`. With these settings, sessions can reach the server under
 * a name whose origin the server accepts as its own.
 */
export const settingsForOwnPages = (...ports: readonly number[]) => ({
  BERTH_EGRESS_ALLOW: ports.map(port => `127.0.0.1/32:${port}`).join(','),
  BERTH_EGRESS_HOSTS: 'localhost=127.0.0.1',
});

export class PageInSession {
  readonly #server: TestServer;
  readonly #session: CreatedSession;
  readonly #cdp: CdpClient;
  readonly #page: string;

  private constructor(server: TestServer, session: CreatedSession, cdp: CdpClient, page: string) {
    this.#server = server;
    this.#session = session;
    this.#cdp = cdp;
    this.#page = page;
  }

  /** Opens the page. `cookie` has the form of the Cookie header. */
  static async open(server: TestServer, cookie: string): Promise<PageInSession> {
    const session = await server.createSession({ keepAlive: true });
    const cdp = await CdpClient.connect(session.connectUrl);
    const page = await cdp.attachToPage();
    const origin = `http://localhost:${new URL(server.url).port}`;
    const [name = '', value = ''] = cookie.split('=');
    await cdp.send('Network.setCookie', { name, value, url: origin, httpOnly: true }, page);
    await cdp.send('Page.setBypassCSP', { enabled: true }, page);
    await cdp.visit(`${origin}/docs`, page);
    return new PageInSession(server, session, cdp, page);
  }

  async send(
    method: string,
    path: string,
    body?: object,
  ): Promise<{ readonly status: unknown; readonly code: unknown }> {
    const headers = { 'content-type': 'application/json' };
    const options = { method, ...(body ? { headers, body: JSON.stringify(body) } : {}) };
    const fetchCall = `fetch(${JSON.stringify(path)}, ${JSON.stringify(options)})`;
    const readAnswer = 'async answer => ({ status: answer.status, code: (await answer.json()).code })';
    const { status, code } = Object(await this.#cdp.evaluate(`${fetchCall}.then(${readAnswer})`, this.#page));
    return { status, code };
  }

  async close(): Promise<void> {
    await this.#cdp.close();
    await this.#server.release(this.#session.id);
  }
}
