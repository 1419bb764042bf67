// Device authorizations (RFC 8628): the operations for HTTP handlers, and the removal of expired authorizations.
import type { Store } from '../../engines/store/store.ts';
import { addMs, type Clock } from '../../kit/clock.ts';
import type { Closeable } from '../../kit/scope.ts';
import type { Task } from '../../kit/task.ts';
import type { Audit } from '../audit/audit.ts';
import { Approval, type ApprovalParts } from './approval.ts';
import { AuthorizationStarter, type AuthorizationStarterParts } from './authorization-starter.ts';
import { DeviceAudit } from './device-audit.ts';
import { DeviceStates } from './device-states.ts';
import { TokenCollector, type TokenCollectorParts } from './token-collector.ts';

/** Time for which expired authorizations are kept, for the audit log and to recognize a code that is sent again. */
const RETENTION_MS = 24 * 3_600_000;
const FORGET_INTERVAL_MS = 600_000;

export interface DeviceMethods {
  readonly starter: Pick<AuthorizationStarter, 'start'>;
  readonly approval: Pick<Approval, 'read' | 'decide'>;
  readonly collector: Pick<TokenCollector, 'collect'>;
  readonly states: Pick<DeviceStates, 'read'>;
}

export interface DeviceParts
  extends Omit<AuthorizationStarterParts, 'audit'>,
    Omit<ApprovalParts, 'audit'>,
    Omit<TokenCollectorParts, 'audit'> {
  readonly store: Pick<Store, 'device' | 'applications' | 'tokens' | 'atomically' | 'listen'>;
  readonly audit: Pick<Audit, 'record'>;
}

export interface DeviceAuthorizations extends Closeable {
  readonly service: DeviceMethods;
  readonly tasks: readonly Task[];
}

export async function openDevice(deviceParts: DeviceParts): Promise<DeviceAuthorizations> {
  const parts = { ...deviceParts, audit: new DeviceAudit(deviceParts.audit) };
  const { store, clock } = parts;
  const states = await DeviceStates.open(parts);
  return {
    service: {
      starter: new AuthorizationStarter(parts),
      approval: new Approval(parts),
      collector: new TokenCollector(parts),
      states,
    },
    tasks: [{ name: 'forget_device_authorizations', everyMs: FORGET_INTERVAL_MS, run: () => forget(store, clock) }],
    close: () => states.close(),
  };
}

async function forget(store: Pick<Store, 'device'>, clock: Clock): Promise<{ removed: number }> {
  return { removed: await store.device.removeExpired(addMs(clock.now(), -RETENTION_MS)) };
}
