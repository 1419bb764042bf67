// Assembles the consumer domain: sign-in, sessions, profiles, passkeys and memory.
import type { Passwords } from '../../engines/authenticators/passwords.ts';
import type { Store } from '../../engines/store/store.ts';
import type { Vault } from '../../engines/vault/vault.ts';
import { addMs } from '../../kit/clock.ts';
import type { ConsumerId } from '../../kit/ids.ts';
import type { Runtime } from '../../kit/runtime.ts';
import type { Secret } from '../../kit/secret.ts';
import type { Task } from '../../kit/task.ts';
import type { Audit } from '../audit/audit.ts';
import { Cursors } from '../identity/cursors.ts';
import type { Identity } from '../identity/identity.ts';
import type { SharedTallies } from '../limits/shared-tally.ts';
import type { Mail } from '../people/email-codes.ts';
import { AgentMemory } from './agent-memory.ts';
import { ConsumerLinker } from './consumer-linker.ts';
import { ConsumerPasskeys, type ConsumerPasskeysParts } from './consumer-passkeys.ts';
import { ConsumerSessions } from './consumer-sessions.ts';
import { HostedSignIns } from './hosted.ts';
import { Identities } from './identities.ts';
import { Memory } from './memory.ts';
import { OwnConsumer } from './own-consumer.ts';
import { Profiles } from './profiles.ts';
import { Providers, type ProvidersParts } from './providers.ts';
import { SealedMemory } from './sealed-memory.ts';
import { SignIns } from './sign-ins.ts';
import { Upstream, type UpstreamParts } from './upstream.ts';

const FORGET_INTERVAL_MS = 3_600_000;
/** Sign-ins, tickets and consumer sessions are kept this long after they expire. */
const RETENTION_MS = 24 * 3_600_000;

export interface ConsumersDeps {
  readonly store: Store;
  readonly identity: Pick<Identity, 'applications' | 'forget'>;
  readonly audit: Pick<Audit, 'record'>;
  readonly mail: Mail;
  readonly passwords: Pick<Passwords, 'hash' | 'matches'>;
  readonly webauthn: ConsumerPasskeysParts['webauthn'];
  readonly publicUrl: string;
  readonly secret: Secret;
  readonly openId: Pick<ProvidersParts, 'discover' | 'metadataIn' | 'seal'> &
    Pick<UpstreamParts, 'relyingParty' | 'tokenSeal'>;
  readonly vault: Pick<Vault, 'of' | 'destroy'>;
  readonly tallies: Pick<SharedTallies, 'of'>;
}

export interface ConsumerServices {
  readonly identities: Identities;
  readonly signIns: SignIns;
  readonly hostedSignIns: HostedSignIns;
  readonly sessions: ConsumerSessions;
  readonly ownConsumer: OwnConsumer;
  readonly profiles: Profiles;
  readonly memory: Memory;
  readonly agentMemory: AgentMemory;
  readonly linker: ConsumerLinker;
  readonly upstream: Upstream;
  readonly providers: Providers;
}

export function openConsumers(
  { clock }: Runtime,
  { store, identity, audit, mail, passwords, webauthn, publicUrl, secret, openId, vault, tallies }: ConsumersDeps,
): { readonly service: ConsumerServices; readonly tasks: readonly Task[] } {
  const callbackUrl = `${publicUrl}/v1/consumer/callback`;
  const { applications } = identity;
  const identities = new Identities({ store, applications, audit, clock, publicUrl });
  const forgetToken = (hash: string): void => identity.forget(hash);
  const sessions = new ConsumerSessions({ store, identities, audit, clock, onTokenInvalidated: forgetToken });
  const signIns = new SignIns({ store, identities, audit, clock, tallies });
  const passkeys = new ConsumerPasskeys({ store, webauthn, clock });
  const sealedMemory = new SealedMemory(vault);
  const destroyKey = (consumer: ConsumerId): Promise<void> => sealedMemory.destroy(consumer);
  const profiles = new Profiles({ store, sessions, audit, clock, destroyKey });
  const memory = new Memory({ store, sealedMemory, audit, clock, cursors: new Cursors(secret, clock) });
  const forget = async (): Promise<Record<string, number>> => {
    const expiredBefore = addMs(clock.now(), -RETENTION_MS);
    return {
      signIns: await store.consumerSignIns.removeExpired(expiredBefore),
      tickets: await store.consumerTickets.removeExpired(expiredBefore),
      sessions: await store.consumerSessions.removeExpired(expiredBefore),
    };
  };
  return {
    service: {
      ...{ identities, signIns, sessions },
      upstream: new Upstream({ ...openId, store, identities, signIns, audit, clock, secret, callbackUrl }),
      providers: new Providers({ ...openId, ...{ store, identities, applications, audit, clock, callbackUrl } }),
      hostedSignIns: new HostedSignIns({ store, signIns, sessions, passkeys, passwords, mail, audit, clock, tallies }),
      ownConsumer: new OwnConsumer({ store, identities, sessions, passkeys, audit }),
      ...{ profiles, memory },
      agentMemory: new AgentMemory({ store, memory, clock, publicUrl }),
      linker: new ConsumerLinker({ store, sessions, profiles, sealedMemory, audit, clock }),
    },
    tasks: [{ name: 'forget_consumer_sign_ins', everyMs: FORGET_INTERVAL_MS, run: forget }],
  };
}
