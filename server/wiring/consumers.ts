// The wiring of consumers: passwords, passkeys, e-mail, and the key that seals their data.
import type { Decisions } from '../domain/actions/decisions.ts';
import type { Catalogue } from '../domain/configured-operations/callable.ts';
import { ConsumerActions } from '../domain/consumers/consumer-actions.ts';
import { ConsumerHandoffs } from '../domain/consumers/consumer-handoffs.ts';
import { ConsumerExport } from '../domain/consumers/export.ts';
import { type ConsumerServices, openConsumers as open } from '../domain/consumers/open-consumers.ts';
import { ConsumerReceipts } from '../domain/consumers/receipts.ts';
import type { Handoffs } from '../domain/handoffs/handoffs.ts';
import { Cursors } from '../domain/identity/cursors.ts';
import type { Identity } from '../domain/identity/identity.ts';
import type { Mail } from '../domain/people/email-codes.ts';
import { Passwords } from '../engines/authenticators/passwords.ts';
import type { OutboundCalls } from '../engines/egress/outbound-calls/outbound-calls.ts';
import { discover, metadataIn } from '../engines/openid/discovery.ts';
import { RelyingParty } from '../engines/openid/relying-party.ts';
import type { Vault } from '../engines/vault/vault.ts';
import type { ApplicationId, ConsumerId } from '../kit/ids.ts';
import type { Runtime } from '../kit/runtime.ts';
import type { Foundation } from './foundation.ts';
import { WEBAUTHN } from './people.ts';

const FIRST_VERSION = 1;

const createOpenIdParts = ({ clock }: Runtime, vault: Vault, outbound: OutboundCalls) => ({
  ...{ metadataIn, relyingParty: new RelyingParty(call => outbound.send(call), clock) },
  discover: (issuer: string) =>
    discover(
      call => outbound.send(call),
      url => outbound.check(url),
      issuer,
    ),
  seal: textSeal<string>(vault, 'consumer_provider'),
  tokenSeal: textSeal<ConsumerId>(vault, 'consumer_id_token'),
});

const textSeal = <Id extends string>(vault: Vault, kind: string) => ({
  close: (owner: ApplicationId, id: Id, text: string): Promise<Buffer> =>
    vault.seal({ owner, kind, id, version: FIRST_VERSION }, Buffer.from(text)),
  open: async (owner: ApplicationId, id: Id, sealed: Buffer): Promise<string> =>
    (await vault.open({ owner, kind, id, version: FIRST_VERSION }, sealed)).reveal().toString(),
});

export const openConsumers = (
  runtime: Runtime,
  { store, vault, audit, config, secret, outbound, tallies }: Foundation,
  deps: { readonly identity: Identity; readonly mail: Mail },
) =>
  open(runtime, {
    ...deps,
    ...{ store, audit, webauthn: WEBAUTHN, publicUrl: config.publicUrl, secret },
    passwords: new Passwords(),
    openId: createOpenIdParts(runtime, vault, outbound),
    ...{ vault, tallies },
  });

/** Gives consumers access to Actions, receipts and hand-offs, which are opened after the consumer family. */
export function openConsumerActions(
  { clock }: Runtime,
  { store, secret, audit }: Foundation,
  deps: {
    readonly decisions: Decisions;
    readonly catalogue: Pick<Catalogue, 'findRevision'>;
    readonly handoffs: Handoffs;
    readonly consumers: ConsumerServices;
  },
) {
  const { profiles, ownConsumer, sessions, memory } = deps.consumers;
  const cursors = new Cursors(secret, clock);
  const actions = new ConsumerActions({ store, decisions: deps.decisions, clock, cursors });
  const receipts = new ConsumerReceipts({ store, catalogue: deps.catalogue, cursors });
  const handoffs = new ConsumerHandoffs({ store, handoffs: deps.handoffs, cursors, clock });
  const exports = new ConsumerExport({ profiles, ownConsumer, sessions, memory, actions, receipts, handoffs, audit });
  return { actions, receipts, handoffs, exports };
}
