// The wiring of the entry for CDP clients.

import type { Forwarding } from '../domain/fleet/forwarding.ts';
import type { Identity } from '../domain/identity/identity.ts';
import type { WaitingBytes } from '../domain/limits/waiting-bytes.ts';
import type { Endings } from '../domain/sessions/endings.ts';
import type { SessionConnector } from '../domain/sessions/session-connector.ts';
import { READ_ENVELOPE } from '../engines/browser/envelope-job.ts';
import { CdpEntry } from '../entry/cdp/upgrade.ts';
import type { Runtime } from '../kit/runtime.ts';
import { wholeBufferOf } from '../kit/whole-buffer.ts';
import type { Families } from './families.ts';
import type { Foundation } from './foundation.ts';

export interface CdpDeps {
  readonly connector: SessionConnector;
  readonly endings: Endings;
  readonly identity: Identity;
  readonly waitingBytes: WaitingBytes;
  readonly live: Families['live'];
  readonly handoffs: Families['handoffs'];
  readonly forwarding: Forwarding;
}

export function openCdp({ clock, log, trace }: Runtime, { config, workers }: Foundation, deps: CdpDeps): CdpEntry {
  const { connector, endings, identity, waitingBytes, live, handoffs, forwarding } = deps;
  return new CdpEntry({
    connector,
    trustedProxies: config.trustedProxies,
    endSession: id => endings.end(id, { status: 'COMPLETED', reason: 'browser_closed' }),
    requestHandoff: (...args) => handoffs.cdp.request(...args),
    leaseOf: id => live.service.leaseOf(id),
    keyUses: identity.keyUses,
    liveView: live.service,
    handleOtherUpgrade: (...upgrade) => live.entry.upgrade(...upgrade),
    forwarding,
    waitingBytes,
    readLongMessage: (message, jobOwner) =>
      workers.run(READ_ENVELOPE, message, { owner: jobOwner, movedBuffers: wholeBufferOf(message) }),
    clock,
    log,
    trace,
  });
}
