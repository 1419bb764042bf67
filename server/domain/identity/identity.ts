// Assembles the identity domain: callers, applications, agent keys and tokens.
import type { Store } from '../../engines/store/store.ts';
import type { Runtime } from '../../kit/runtime.ts';
import type { Closeable } from '../../kit/scope.ts';
import type { Secret } from '../../kit/secret.ts';
import type { Task } from '../../kit/task.ts';
import type { Audit } from '../audit/audit.ts';
import { CredentialNotices } from '../audit/credential-notices.ts';
import type { SharedTallies } from '../limits/shared-tally.ts';
import { AgentKeys } from './agent-keys.ts';
import { Applications } from './applications.ts';
import { Callers } from './callers.ts';
import { parseCredentialChange } from './credential-change.ts';
import { Cursors } from './cursors.ts';
import { KeyUses } from './key-uses.ts';
import { Tokens } from './tokens.ts';

const END_KEY_USES_INTERVAL_MS = 1_000;

/** The public interface of a class, without its private members. */
type Public<Class> = Pick<Class, keyof Class>;

export interface Identity extends Closeable {
  readonly callers: Public<Callers>;
  readonly applications: Applications;
  readonly agentKeys: AgentKeys;
  readonly tokens: Tokens;
  readonly keyUses: KeyUses;
  readonly tasks: readonly Task[];
  /** Drops a credential from the cache of this process. `hash` is in hex. */
  forget(hash: string): void;
}

/** The operations that HTTP handlers may call. */
export interface IdentityServices {
  readonly callers: Pick<Callers, 'authenticate'>;
  readonly keyUses: Pick<KeyUses, 'hold'>;
  readonly applications: Public<Applications>;
  readonly agentKeys: Public<AgentKeys>;
  readonly tokens: Public<Tokens>;
}

export interface IdentityDeps {
  readonly store: Pick<
    Store,
    'applications' | 'keys' | 'tokens' | 'humanSessions' | 'consumerSessions' | 'atomically' | 'listen'
  >;
  /** The secret of the installation, with which cursors are signed. */
  readonly secret: Secret;
  readonly audit: Pick<Audit, 'record'>;
  readonly tallies: Pick<SharedTallies, 'of'>;
}

export async function openIdentity(
  { clock, log }: Runtime,
  { store, secret, audit, tallies }: IdentityDeps,
): Promise<Identity> {
  const cursors = new Cursors(secret, clock);
  const callers = await Callers.open(store, clock, log, new CredentialNotices({ audit, clock, log }));
  const keyUses = new KeyUses({ store, clock, log });
  const subscription = await store.listen(
    'credential_revoked',
    payload => {
      const { hash, shouldKeepConnections } = parseCredentialChange(payload);
      keyUses.handleChange(hash, shouldKeepConnections);
    },
    () => keyUses.invalidateAll(),
  );
  const onCredentialChanged = (hash: string, shouldKeepConnections = false): void => {
    callers.forget(hash);
    keyUses.handleChange(hash, shouldKeepConnections);
  };
  const applications = new Applications({ store, clock, cursors, audit, onCredentialChanged });
  return {
    callers,
    applications,
    agentKeys: new AgentKeys({ store, clock, cursors, applications, audit, onCredentialChanged }),
    tokens: new Tokens({ store, clock, cursors, applications, audit, onCredentialChanged, tallies }),
    keyUses,
    forget: onCredentialChanged,
    tasks: [{ name: 'end_key_uses', everyMs: END_KEY_USES_INTERVAL_MS, run: () => keyUses.reconcile() }],
    close: async () => {
      await subscription.close();
      await callers.close();
    },
  };
}
