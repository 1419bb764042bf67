// The wiring of the entry for CDP clients.

import type { Forwarding } from '../domain/fleet/forwarding.ts';
import type { Identity } from '../domain/identity/identity.ts';
import type { WaitingBytes } from '../domain/limits/waiting-bytes.ts';
import type { Connect } from '../domain/sessions/connect.ts';
import type { Endings } from '../domain/sessions/endings.ts';
import { READ_ENVELOPE } from '../engines/browser/envelope-job.ts';
import { CdpEntry } from '../entry/cdp/upgrade.ts';
import type { Runtime } from '../kit/runtime.ts';
import { wholeBufferOf } from '../kit/whole-buffer.ts';
import type { Families } from './families.ts';
import type { Foundation } from './foundation.ts';

export interface CdpDeps {
  readonly connect: Connect;
  readonly endings: Endings;
  readonly identity: Identity;
  readonly waiting: WaitingBytes;
  readonly live: Families['live'];
  readonly handoffs: Families['handoffs'];
  readonly forwarding: Forwarding;
}

export function openCdp({ clock, log, trace }: Runtime, { config, workers }: Foundation, deps: CdpDeps): CdpEntry {
  const { connect, endings, identity, waiting, live, handoffs, forwarding } = deps;
  return new CdpEntry({
    connect,
    trustedProxies: config.trustedProxies,
    endSession: id => endings.end(id, { status: 'COMPLETED', reason: 'browser_closed' }),
    requestHandoff: (...args) => handoffs.cdp.request(...args),
    leaseOf: id => live.service.leaseOf(id),
    keyUses: identity.keyUses,
    people: live.service,
    handleOtherUpgrade: (...upgrade) => live.entry.upgrade(...upgrade),
    forwarding,
    waiting,
    readLong: (message, jobOwner) =>
      workers.run(READ_ENVELOPE, message, { of: jobOwner, movedBuffers: wholeBufferOf(message) }),
    clock,
    log,
    trace,
  });
}
