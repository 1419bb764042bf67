// The wiring of the driver, which controls the browsers of sessions for MCP clients and for operations.
import type { AgentCaller } from '../domain/identity/caller.ts';
import type { LiveSessions } from '../domain/sessions/live.ts';
import type { Signing } from '../domain/sessions/signing.ts';
import { DriveFailed } from '../engines/driver/command.ts';
import { Driver } from '../engines/driver/driver.ts';
import type { SessionId } from '../kit/ids.ts';
import type { Runtime } from '../kit/runtime.ts';
import type { Foundation } from './foundation.ts';

export interface Driving {
  readonly driver: Driver;
  readonly isDriveFailed: (error: unknown) => error is DriveFailed;
  /**
   * Returns the address at which the driver reaches the browser of a session with the rights of this caller. With
   * `pass`, the driver can also reach an exclusive session. With `guest`, the driver does not keep the session running
   * after the clients of the session have disconnected.
   */
  readonly addressOf: (caller: AgentCaller, id: SessionId, access?: 'guest' | 'pass') => string;
  /** Keeps a session without clients running until the returned hold is closed. */
  readonly holdSession: (id: SessionId) => { close(): void };
}

interface DrivingDeps {
  readonly signing: Signing;
  readonly liveSessions: Pick<LiveSessions, 'get'>;
}

/** `localUrl` returns the listening address once the server is listening. */
export function openDriving(
  { log }: Runtime,
  { scope }: Pick<Foundation, 'scope'>,
  { signing, liveSessions }: DrivingDeps,
  localUrl: () => string,
): Driving {
  return {
    driver: scope.own(new Driver(log)),
    isDriveFailed: error => error instanceof DriveFailed,
    addressOf: ({ keyId }, id, access) => {
      const connectAddress = `${localUrl().replace(/^http/, 'ws')}/v1/browsers/sessions/${id}/connect`;
      const client = access === 'guest' ? 'guest' : 'driver';
      const address = `${connectAddress}?client=${client}&signingKey=${signing.keyOf(id, keyId)}`;
      return access === 'pass' ? `${address}&pass=${signing.passOf(id).reveal()}` : address;
    },
    // If this process does not run the session, the session has ended, and there is nothing to hold.
    holdSession: id => liveSessions.get(id)?.hold() ?? { close: () => {} },
  };
}
