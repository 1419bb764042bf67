// Creates a session for one piece of work, passes it to a CDP client, and releases it at the end, whether or not the
// work succeeded.
import { BerthError } from './berth-error.ts';
import type { Berth } from './client.ts';
import { dataOf } from './data-of.ts';
import type { components } from './generated/api.ts';
import type { Session } from './wait-for.ts';

export interface ConnectedBrowser<Browser> extends AsyncDisposable {
  readonly browser: Browser;
  readonly session: Session;
  /** Ends the session, which disconnects the browser. Calling it again has no effect. */
  release(): Promise<void>;
}

/**
 * Creates a session and passes its `connectUrl` to `open`. With `await using`, the session is released at the end of
 * the block:
 * `await using berthed = await connect(berth, url => chromium.connectOverCDP(url), { timeout: 600 })`
 */
export async function connect<Browser>(
  berth: Berth,
  open: (connectUrl: string, session: Session) => Browser | Promise<Browser>,
  body: components['schemas']['CreateSession'] = {},
): Promise<ConnectedBrowser<Browser>> {
  const session = await dataOf(berth.POST('/v1/browsers/sessions', { body }));
  const release = onlyOnce(() => releaseSession(berth, session.id));
  try {
    const browser = await open(connectUrlOf(session), session);
    return { browser, session, release, [Symbol.asyncDispose]: release };
  } catch (error) {
    // The error that `open` threw matters more than an error from the release.
    await release().catch(() => {});
    throw error;
  }
}

function connectUrlOf({ id, connectUrl }: Session): string {
  if (connectUrl !== undefined) return connectUrl;
  throw new BerthError({
    code: 'permission_denied',
    message: `Session ${id} was created, but the agent key may not connect to it.`,
    advice: 'Use an agent key with the scope `browsers:connect`.',
  });
}

async function releaseSession(berth: Berth, id: string): Promise<void> {
  try {
    await berth.POST('/v1/browsers/sessions/{id}', { params: { path: { id } }, body: { status: 'REQUEST_RELEASE' } });
  } catch (error) {
    if (!(error instanceof BerthError && error.code === 'session_not_running')) throw error;
  }
}

function onlyOnce(work: () => Promise<void>): () => Promise<void> {
  let pendingResult: Promise<void> | undefined;
  return () => {
    pendingResult ??= work();
    return pendingResult;
  };
}
