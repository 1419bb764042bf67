// Starts device authorizations.
import {
  DEFAULT_DEVICE_SCOPES,
  DEVICE_CODE_LIFETIME_SECONDS,
  POLL_INTERVAL_SECONDS,
  type StartDevice,
  type StartedDevice,
} from '../../../contract/device.ts';
import { TOKEN_SCOPES } from '../../../contract/tokens.ts';
import type { DeviceAuthorizationRow } from '../../engines/store/rows/device.ts';
import type { Store } from '../../engines/store/store.ts';
import { addMs, type Clock } from '../../kit/clock.ts';
import { boundedText } from '../../kit/foreign.ts';
import { type DeviceAuthorizationId, newId } from '../../kit/ids.ts';
import type { Secret } from '../../kit/secret.ts';
import { fault, invalidRequest } from '../faults.ts';
import type { RequestSource } from '../identity/caller.ts';
import { mint } from '../identity/credentials.ts';
import type { SharedTallies, SharedTally } from '../limits/shared-tally.ts';
import { formatUserCode, newUserCode, userCodeDigest } from './codes.ts';
import type { DeviceAudit } from './device-audit.ts';

const STARTS_PER_MINUTE_MAX = 30;
const MINUTE_MS = 60_000;
/** Maximum number of unexpired authorizations, across all clients. */
const OPEN_AUTHORIZATIONS_MAX = 10_000;
const CODE_TRIES_MAX = 5;
const DISPLAY_TEXT_CHARACTERS_MAX = 200;

export interface AuthorizationStarterParts {
  readonly store: Pick<Store, 'device'>;
  readonly clock: Clock;
  readonly tallies: Pick<SharedTallies, 'of'>;
  /** Secret of the installation. */
  readonly secret: Secret;
  /** The origin of the service. */
  readonly publicUrl: string;
  readonly audit: DeviceAudit;
}

export class AuthorizationStarter {
  readonly #parts: AuthorizationStarterParts;
  readonly #startTally: SharedTally;

  constructor(parts: AuthorizationStarterParts) {
    this.#parts = parts;
    const limit = {
      name: 'device.starts',
      what: 'started device authorizations',
      max: STARTS_PER_MINUTE_MAX,
      withinMs: MINUTE_MS,
    } as const;
    this.#startTally = parts.tallies.of({ ...limit, scope: 'address' });
  }

  async start(request: StartDevice, source: RequestSource): Promise<StartedDevice> {
    const { clock, publicUrl, audit } = this.#parts;
    await this.#startTally.take(source.ip);
    assertChallenge(request);
    assertResource(request.resource, publicUrl);
    const now = clock.now();
    const { hash, text: deviceCode } = mint('device_code');
    const deviceName =
      request.device_name === undefined ? undefined : requirePrintable(request.device_name, 'device_name');
    const { row, userCode } = await this.#insert({
      id: newId<DeviceAuthorizationId>(now),
      deviceCodeHash: hash,
      clientId: request.client_id,
      scopes: scopesIn(request.scope),
      status: 'pending',
      requestedIp: source.ip,
      intervalSeconds: POLL_INTERVAL_SECONDS,
      startedAt: now,
      expiresAt: addMs(now, DEVICE_CODE_LIFETIME_SECONDS * 1000),
      ...(deviceName === undefined ? {} : { deviceName }),
      ...(request.code_challenge === undefined ? {} : { codeChallenge: request.code_challenge }),
      ...(source.userAgent === undefined ? {} : { userAgent: displayText(source.userAgent) }),
    });
    await audit.recordStart(row, source);
    const pageUrl = `${publicUrl}/device`;
    return {
      id: row.id,
      device_code: deviceCode.reveal(),
      user_code: formatUserCode(userCode),
      verification_uri: pageUrl,
      verification_uri_complete: `${pageUrl}#${formatUserCode(userCode)}`,
      expires_in: DEVICE_CODE_LIFETIME_SECONDS,
      interval: POLL_INTERVAL_SECONDS,
    };
  }

  /**
   * Inserts the authorization. In the rare case that another authorization has the same user code, tries another code.
   */
  async #insert(
    start: Omit<DeviceAuthorizationRow, 'userCodeHash'>,
  ): Promise<{ row: DeviceAuthorizationRow; userCode: string }> {
    const { store, secret } = this.#parts;
    for (let attempt = 1; ; attempt += 1) {
      const userCode = newUserCode();
      const row: DeviceAuthorizationRow = { ...start, userCodeHash: userCodeDigest(secret, userCode) };
      const outcome = await store.device.insert(row, OPEN_AUTHORIZATIONS_MAX);
      if (outcome === 'inserted') return { row, userCode };
      if (outcome === 'limit_reached' || attempt === CODE_TRIES_MAX) throw tooManyAuthorizations();
    }
  }
}

/** Maximum number of characters of unknown scopes that an error contains. */
const SCOPES_CHARACTERS_SHOWN_MAX = 100;

function scopesIn(text: string | undefined): readonly string[] {
  const requestedScopes = [...new Set((text ?? '').split(' ').filter(word => word !== ''))];
  const unknownScopes = requestedScopes.filter(word => !(TOKEN_SCOPES as readonly string[]).includes(word));
  if (unknownScopes.length > 0)
    throw fault(
      'invalid_scope',
      `The scope parameter contains unknown scopes: ${boundedText(unknownScopes.join(', '), SCOPES_CHARACTERS_SHOWN_MAX)}.`,
      {
        advice: `The known scopes are ${TOKEN_SCOPES.join(', ')}.`,
      },
    );
  return requestedScopes.length > 0 ? requestedScopes : DEFAULT_DEVICE_SCOPES;
}

function assertChallenge({ code_challenge: challenge, code_challenge_method: method }: StartDevice): void {
  if ((challenge === undefined) === (method === undefined)) return;
  const path = challenge === undefined ? 'code_challenge' : 'code_challenge_method';
  throw invalidRequest([
    { path, message: 'is missing; code_challenge and code_challenge_method=S256 must be sent together' },
  ]);
}

function assertResource(resource: string | undefined, publicUrl: string): void {
  if (resource === undefined) return;
  if (URL.canParse(resource) && new URL(resource).href === new URL(publicUrl).href) return;
  throw fault('invalid_target', 'The resource parameter is not the address of this service.', {
    advice: `Omit resource, or send ${publicUrl}.`,
  });
}

/** Removes characters that a page would not show, and characters that change the direction of adjacent text. */
const displayText = (text: string): string =>
  text
    .toWellFormed()
    .replace(/[\p{Cc}\p{Cf}]/gu, '')
    .slice(0, DISPLAY_TEXT_CHARACTERS_MAX);

function requirePrintable(text: string, path: string): string {
  const printableText = displayText(text).trim();
  if (printableText === '') throw invalidRequest([{ path, message: 'contains no printable character' }]);
  return printableText;
}

const tooManyAuthorizations = (): Error =>
  fault('busy', 'Too many device authorizations are pending.', {
    advice: 'Start the authorization again in a few minutes.',
  });
