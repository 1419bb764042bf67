// Issues the token of a device authorization, once, and only to the client that started the authorization and has the
// device code.
import {
  type CollectedToken,
  type CollectToken,
  DEVELOPER_TOKEN_LIFETIME_SECONDS,
  DEVICE_GRANT_TYPE,
} from '../../../contract/device.ts';
import type { ErrorCode } from '../../../contract/errors.ts';
import { TOKENS_PER_ACCOUNT_MAX } from '../../../contract/tokens.ts';
import type { TokenRow } from '../../engines/store/rows/credentials.ts';
import type { DeviceAuthorizationRow, TokenRequestEffect } from '../../engines/store/rows/device.ts';
import type { Store } from '../../engines/store/store.ts';
import { addMs, type Clock } from '../../kit/clock.ts';
import { newId, type TokenId } from '../../kit/ids.ts';
import { fault, invalidRequest, limitReached, REVOKE_ADVICE } from '../faults.ts';
import type { RequestSource } from '../identity/caller.ts';
import { type MintedCredential, mint, recognizeSecret } from '../identity/credentials.ts';
import type { SharedTallies, SharedTally } from '../limits/shared-tally.ts';
import { verifierMatches } from './codes.ts';
import type { DeviceAudit } from './device-audit.ts';
import { isTooSoon, slowerInterval, statusAt } from './state.ts';

const REQUESTS_PER_MINUTE_MAX = 300;
const MINUTE_MS = 60_000;
const CLIENT_ID_PATTERN = /^[A-Za-z0-9._:-]{1,64}$/;
const VERIFIER_PATTERN = /^[A-Za-z0-9._~-]{43,128}$/;

export interface TokenCollectorParts {
  readonly store: Pick<Store, 'device' | 'tokens' | 'atomically'>;
  readonly clock: Clock;
  readonly tallies: Pick<SharedTallies, 'of'>;
  /** Drops a revoked token from the cache. `hash` is the hash of the token, in hex. */
  readonly forget: (hash: string) => void;
  readonly audit: DeviceAudit;
}

/** The effect of a token request, and the error to return if no token is issued. */
type Verdict = TokenRequestEffect & { readonly errorCode?: ErrorCode; readonly mintedCredential?: MintedCredential };

export class TokenCollector {
  readonly #parts: TokenCollectorParts;
  readonly #requestTally: SharedTally;

  constructor(parts: TokenCollectorParts) {
    this.#parts = parts;
    const limit = {
      name: 'device.tokens',
      what: 'requests for tokens',
      max: REQUESTS_PER_MINUTE_MAX,
      withinMs: MINUTE_MS,
    } as const;
    this.#requestTally = parts.tallies.of({ ...limit, scope: 'address' });
  }

  async collect(request: CollectToken, source: RequestSource): Promise<CollectedToken> {
    const { store, clock, audit } = this.#parts;
    await this.#requestTally.take(source.ip);
    const { deviceCode, clientId, verifier } = parametersOf(request);
    const hash = recognizeSecret('device_code', deviceCode);
    if (!hash) throw invalidGrant();
    const now = clock.now();
    const decide = (row: DeviceAuthorizationRow | undefined): Verdict => decideVerdict(row, clientId, verifier, now);
    const { row, verdict } = await store.atomically(async trx => {
      const collectResult = await trx.device.collect(hash, now, decide, TOKENS_PER_ACCOUNT_MAX);
      const { row, verdict } = collectResult;
      if (!row || verdict === 'limit_reached') return collectResult;
      if (verdict.kind === 'revoke') await audit.recordReplay(row, source, trx);
      if (verdict.kind === 'redeem') await audit.recordRedemption({ ...row, tokenId: verdict.token.id }, source, trx);
      return collectResult;
    });
    if (verdict === 'limit_reached')
      throw limitReached('active tokens in the account', TOKENS_PER_ACCOUNT_MAX, REVOKE_ADVICE);
    if (row && verdict.kind === 'revoke') await this.#forgetToken(row, verdict.token);
    if (!row || verdict.kind !== 'redeem' || !verdict.mintedCredential) throw refusal(verdict);
    return {
      access_token: verdict.mintedCredential.text.reveal(),
      token_type: 'Bearer',
      expires_in: DEVELOPER_TOKEN_LIFETIME_SECONDS,
      scope: row.scopes.join(' '),
      token_id: verdict.token.id,
      application_ids: [...(row.applicationIds ?? [])],
    };
  }

  /**
   * Drops a revoked token from the cache. The token was revoked because its device code was sent again, so the code may
   * have been stolen.
   */
  async #forgetToken({ accountId }: DeviceAuthorizationRow, tokenId: TokenId): Promise<void> {
    const { store, forget } = this.#parts;
    const token = accountId && (await store.tokens.get(accountId, tokenId));
    if (token) forget(token.hash.toString('hex'));
  }
}

function parametersOf(request: CollectToken): { deviceCode: string; clientId: string; verifier: string | undefined } {
  const { grant_type: grantType, device_code: deviceCode, client_id: clientId, code_verifier: verifier } = request;
  if (grantType !== DEVICE_GRANT_TYPE)
    throw fault('unsupported_grant_type', 'The grant type is not supported.', {
      advice: `Send grant_type=${DEVICE_GRANT_TYPE}.`,
    });
  if (clientId === undefined || !CLIENT_ID_PATTERN.test(clientId))
    throw fault('invalid_client', 'client_id is missing or malformed.', {
      advice: 'Send the client_id with which the device authorization was started.',
    });
  if (deviceCode === undefined) throw invalidRequest([{ path: 'device_code', message: 'is missing' }]);
  return { deviceCode, clientId, verifier };
}

/**
 * Decides the effect of a token request. A request with the wrong client id or verifier changes nothing. The interval
 * is checked before the code is checked for an earlier redemption. Concurrent requests of one client are therefore
 * refused as too soon, and do not revoke the token. A later request after the redemption indicates theft.
 */
function decideVerdict(
  row: DeviceAuthorizationRow | undefined,
  clientId: string,
  verifier: string | undefined,
  now: Date,
): Verdict {
  if (!row || row.clientId !== clientId || !isFromStarter(row, verifier))
    return { kind: 'nothing', errorCode: 'invalid_grant' };
  const status = statusAt(row, now);
  if (status === 'denied') return { kind: 'nothing', errorCode: 'access_denied' };
  if (status === 'expired') return { kind: 'nothing', errorCode: 'expired_token' };
  if (isTooSoon(row, now)) return { kind: 'slow_down', intervalSeconds: slowerInterval(row), errorCode: 'slow_down' };
  if (status === 'redeemed' && row.tokenId) return { kind: 'revoke', token: row.tokenId, errorCode: 'invalid_grant' };
  if (status !== 'approved' || !row.accountId) return { kind: 'count', errorCode: 'authorization_pending' };
  const mintedToken = mint('developer_token');
  return { kind: 'redeem', token: newTokenRow(row, row.accountId, mintedToken, now), mintedCredential: mintedToken };
}

const isFromStarter = ({ codeChallenge }: DeviceAuthorizationRow, verifier: string | undefined): boolean =>
  codeChallenge === undefined ||
  (verifier !== undefined && VERIFIER_PATTERN.test(verifier) && verifierMatches(codeChallenge, verifier));

const newTokenRow = (
  row: DeviceAuthorizationRow,
  accountId: NonNullable<DeviceAuthorizationRow['accountId']>,
  { hash, prefix }: MintedCredential,
  now: Date,
): TokenRow => ({
  id: newId<TokenId>(now),
  accountId,
  name: row.deviceName ?? row.clientId,
  ...{ prefix, hash, kind: 'developer', scopes: row.scopes, cidrAllow: [] },
  createdAt: now,
  expiresAt: addMs(now, DEVELOPER_TOKEN_LIFETIME_SECONDS * 1000),
  applicationIds: row.applicationIds ?? [],
});

const MESSAGES: Readonly<Partial<Record<ErrorCode, string>>> = {
  authorization_pending: 'The person has not decided yet. Send the request again after the interval.',
  slow_down: 'The token was requested again too soon.',
  access_denied: 'The person denied the authorization. Start a new one only if the person asks for it.',
  expired_token: 'The device code has expired. Start a new device authorization.',
};

function refusal({ errorCode = 'invalid_grant', ...verdict }: Verdict): Error {
  const message = MESSAGES[errorCode];
  if (message === undefined) return invalidGrant();
  if (verdict.kind !== 'slow_down') return fault(errorCode, message);
  const { intervalSeconds } = verdict;
  return fault(errorCode, message, {
    advice: `Wait ${intervalSeconds} s between requests.`,
    details: { interval: intervalSeconds, retryAfterSeconds: intervalSeconds },
  });
}

const invalidGrant = (): Error =>
  fault('invalid_grant', 'The device code is not valid for this client.', {
    advice: 'Start a new device authorization.',
  });
