// Issues, lists and revokes personal access tokens. A token has at most the scopes of the caller that issues it. A
// token is shown only once.
import { PAGE_LIMIT_DEFAULT, type PageQuery } from '../../../contract/common.ts';
import {
  type CreateToken,
  type IssuedToken,
  MANAGE_TOKENS_SCOPE,
  TOKEN_LIFETIME_DAYS_DEFAULT,
  TOKEN_LIFETIME_DAYS_MAX,
  TOKENS_PER_ACCOUNT_MAX,
  type Token,
  type TokenPage,
} from '../../../contract/tokens.ts';
import type { TokenRow } from '../../engines/store/rows/credentials.ts';
import type { Store } from '../../engines/store/store.ts';
import { addMs, type Clock } from '../../kit/clock.ts';
import { withoutUndefined } from '../../kit/complete.ts';
import { type AccountId, type ApplicationId, isUuid, newId, type TokenId } from '../../kit/ids.ts';
import type { Secret } from '../../kit/secret.ts';
import type { Audit, AuditSource, AuditTransaction } from '../audit/audit.ts';
import { BY_OPERATOR, byCaller } from '../audit/by-caller.ts';
import { fault, invalidRequest, limitReached, notFound, REVOKE_ADVICE, scopeMissing } from '../faults.ts';
import type { SharedTallies, SharedTally } from '../limits/shared-tally.ts';
import type { Applications } from './applications.ts';
import { type AccountCaller, type RequestSource, tokenIdOf } from './caller.ts';
import { covers } from './cidr.ts';
import { cleanRanges, credentialView, invalidExpiry, parseFutureExpiry } from './credential-rules.ts';
import { mint, recognize } from './credentials.ts';
import { type Cursors, type ListName, listPageOf } from './cursors.ts';
import { cleanName } from './names.ts';

const DAY_MS = 24 * 3600 * 1000;
const REVOCATION_LIMIT = {
  name: 'revocations',
  what: 'revocations',
  max: 60,
  withinMs: 60_000,
  scope: 'address',
} as const;

/** A token can be used to issue other tokens. Those tokens cannot have this scope, so they cannot issue tokens. */
const UNGRANTABLE_SCOPE = MANAGE_TOKENS_SCOPE;

export interface TokensParts {
  readonly store: Pick<Store, 'tokens' | 'atomically'>;
  readonly clock: Clock;
  readonly cursors: Cursors;
  readonly applications: Applications;
  readonly audit: Pick<Audit, 'record'>;
  /** Called with the hash, in hex, of each revoked token. */
  readonly onCredentialChanged: (hash: string) => void;
  readonly tallies: Pick<SharedTallies, 'of'>;
}

export class Tokens {
  readonly #parts: TokensParts;
  readonly #revocationTally: SharedTally;

  constructor(parts: TokensParts) {
    this.#parts = parts;
    this.#revocationTally = parts.tallies.of(REVOCATION_LIMIT);
  }

  async create(caller: AccountCaller, request: CreateToken): Promise<IssuedToken> {
    assertMayGrant(caller, request.scopes);
    const applicationIds = await this.#requireApplicationIds(caller, request.applicationIds);
    const boundedRequest = {
      ...request,
      ...this.#bounds(caller, request),
      ...(applicationIds ? { applicationIds } : {}),
    };
    const { row, token } = await this.issue(caller.accountId, boundedRequest, byCaller(caller), tokenIdOf(caller));
    return { ...this.#view(row), token: token.reveal() };
  }

  /** Issues a token with any scopes, without checking a caller. Used directly by the command line. */
  async issue(
    accountId: AccountId,
    request: CreateToken,
    source: AuditSource = BY_OPERATOR,
    issuedBy?: TokenId,
  ): Promise<{ row: TokenRow; token: Secret }> {
    const now = this.#parts.clock.now();
    const { hash, prefix, text } = mint('personal_token');
    const row: TokenRow = {
      id: newId<TokenId>(now),
      accountId,
      name: cleanName(request.name),
      prefix,
      hash,
      kind: 'personal',
      scopes: [...new Set(request.scopes)],
      cidrAllow: cleanRanges(request.cidrAllow),
      createdAt: now,
      expiresAt: resolveExpiry(request.expiresAt, now),
      ...(request.applicationIds ? { applicationIds: [...new Set(request.applicationIds)] as ApplicationId[] } : {}),
      ...(issuedBy ? { issuedBy } : {}),
    };
    await this.#parts.store.atomically(async trx => {
      const outcome = await trx.tokens.insert(row, TOKENS_PER_ACCOUNT_MAX);
      if (outcome === 'limit_reached')
        throw limitReached('active tokens in this account', TOKENS_PER_ACCOUNT_MAX, REVOKE_ADVICE);
      await this.#record(trx, 'token.created', row, source);
    });
    return { row, token: text };
  }

  /**
   * Lists tokens. A restricted token lists itself and the tokens that it has issued. Any other caller lists all tokens
   * of the account.
   */
  async list(caller: AccountCaller, { limit = PAGE_LIMIT_DEFAULT, cursor }: PageQuery): Promise<TokenPage> {
    const { accountId } = caller;
    const restrictedTokenId = caller.applicationIds ? tokenIdOf(caller) : undefined;
    const { store, clock, cursors } = this.#parts;
    const name: ListName = { list: 'tokens', owner: restrictedTokenId ?? accountId };
    const beforeOption = cursor === undefined ? {} : { before: cursors.read<TokenId>(name, cursor) };
    const rows = await store.tokens.list(accountId, clock.now(), {
      ...{ limit: limit + 1, ...beforeOption },
      ...(restrictedTokenId ? { of: restrictedTokenId } : {}),
    });
    return listPageOf(
      rows,
      limit,
      row => this.#view(row),
      last => cursors.after(name, last),
    );
  }

  /**
   * Returns the token that authenticated the request.
   * @throws Fault `not_found` for a person who signed in, because there is no token.
   */
  async current(caller: AccountCaller): Promise<Token> {
    const id = tokenIdOf(caller);
    if (!id) throw notAToken();
    return this.#view(await this.#get(caller.accountId, id));
  }

  /**
   * Revokes a token. A token may revoke itself. The scope `account:tokens` is required to revoke other tokens.
   * Apart from itself, a restricted token may revoke only the tokens that it has issued.
   */
  async revoke(caller: AccountCaller, id: string): Promise<void> {
    const { accountId } = caller;
    const tokenId = tokenIdOf(caller);
    if (id !== tokenId && !caller.scopes.has(MANAGE_TOKENS_SCOPE)) throw scopeMissing([MANAGE_TOKENS_SCOPE]);
    const row = await this.#get(accountId, id);
    if (caller.applicationIds && row.id !== tokenId && row.issuedBy !== tokenId) throw notFound('Token', id);
    await this.end(accountId, id, byCaller(caller));
  }

  /** Revokes a token without another credential (RFC 7009). Does nothing if the text is not a valid token. */
  async revokeSent(token: string, source: RequestSource): Promise<void> {
    await this.#revocationTally.take(source.ip);
    const credential = recognize(token);
    if (credential?.kind !== 'personal_token' && credential?.kind !== 'developer_token') return;
    const row = await this.#parts.store.tokens.byHash(credential.hash);
    if (!row) return;
    await this.#revoke(row, { actor: { kind: 'anonymous' }, ...source });
  }

  /** Revokes a token without checking a caller. Used by the command line. */
  async end(accountId: AccountId, id: string, source: AuditSource = BY_OPERATOR): Promise<void> {
    const row = await this.#get(accountId, id);
    if (!(await this.#revoke(row, source))) throw notFound('Token', id);
  }

  /** Revokes a token. Returns false if the token was no longer active. */
  async #revoke(row: TokenRow, source: AuditSource): Promise<boolean> {
    const now = this.#parts.clock.now();
    const isEnded = await this.#parts.store.atomically(async trx => {
      const isEnded = await trx.tokens.revoke(row.accountId, row.id, now);
      if (isEnded) await this.#record(trx, 'token.revoked', row, source);
      return isEnded;
    });
    this.#parts.onCredentialChanged(row.hash.toString('hex'));
    return isEnded;
  }

  async #record(
    trx: AuditTransaction,
    action: 'token.created' | 'token.revoked',
    { id, accountId, scopes }: TokenRow,
    source: AuditSource,
  ): Promise<void> {
    const target = { kind: 'token', id };
    const entry = { ...source, action, accountId, target, outcome: 'success', details: { scopes } } as const;
    await this.#parts.audit.record(entry, trx);
  }

  /** Returns the applications to which a new token is restricted: the requested ones, or those of the caller. */
  async #requireApplicationIds(
    caller: AccountCaller,
    requestedIds: readonly string[] | undefined,
  ): Promise<string[] | undefined> {
    if (!requestedIds) return caller.applicationIds ? [...caller.applicationIds] : undefined;
    const accessFlags = await Promise.all(requestedIds.map(id => this.#parts.applications.canAccess(caller, id)));
    const issues = requestedIds.flatMap((id, index) =>
      accessFlags[index] ? [] : [{ path: `applicationIds[${index}]`, message: `names ${id}, which you cannot access` }],
    );
    if (issues.length > 0) throw invalidRequest(issues);
    return [...requestedIds];
  }

  /** Returns the address ranges and expiry of the new token. Throws if they exceed the limits of the calling token. */
  #bounds(caller: AccountCaller, request: CreateToken): Pick<CreateToken, 'cidrAllow' | 'expiresAt'> {
    const now = this.#parts.clock.now();
    const expiresAt = request.expiresAt === undefined ? defaultExpiry(caller, now) : request.expiresAt;
    if (caller.expiresAt && new Date(expiresAt) > caller.expiresAt)
      throw invalidExpiry(`is later than ${caller.expiresAt.toISOString()}, when the issuing token expires`);
    const cidrAllow = cleanRanges(request.cidrAllow);
    if (caller.cidrAllow.length === 0) return { expiresAt, cidrAllow };
    const issues = cidrAllow.flatMap((range, index) =>
      covers(caller.cidrAllow, range)
        ? []
        : [
            {
              path: `cidrAllow[${index}]`,
              message: `is ${range}, which is outside the address ranges of the issuing token`,
            },
          ],
    );
    if (issues.length > 0) throw invalidRequest(issues);
    return { expiresAt, cidrAllow: cidrAllow.length > 0 ? cidrAllow : [...caller.cidrAllow] };
  }

  async #get(accountId: AccountId, id: string): Promise<TokenRow> {
    const row = isUuid(id) ? await this.#parts.store.tokens.get(accountId, id as TokenId) : undefined;
    if (!row) throw notFound('Token', id);
    return row;
  }

  #view(row: TokenRow): Token {
    return withoutUndefined<Token>({
      ...credentialView(row, this.#parts.clock.now()),
      kind: row.kind,
      applicationIds: row.applicationIds && [...row.applicationIds],
    });
  }
}

function defaultExpiry({ expiresAt }: AccountCaller, now: Date): string {
  const expiryDate = addMs(now, TOKEN_LIFETIME_DAYS_DEFAULT * DAY_MS);
  return (expiresAt && expiresAt < expiryDate ? expiresAt : expiryDate).toISOString();
}

function resolveExpiry(requestedExpiry: string | undefined, now: Date): Date {
  const expiryDate = parseFutureExpiry(requestedExpiry, now) ?? addMs(now, TOKEN_LIFETIME_DAYS_DEFAULT * DAY_MS);
  const latestExpiry = addMs(now, TOKEN_LIFETIME_DAYS_MAX * DAY_MS);
  if (expiryDate > latestExpiry)
    throw invalidExpiry(
      `is more than ${TOKEN_LIFETIME_DAYS_MAX} days ahead; the latest is ${latestExpiry.toISOString()}`,
    );
  return expiryDate;
}

const notAToken = (): Error =>
  fault('not_found', 'This request was sent with a sign-in cookie, not with a token.', {
    advice: 'To read the account of the person who is signed in, send GET /v1/account.',
  });

function assertMayGrant(caller: AccountCaller, scopes: readonly string[]): void {
  const refusedScopes = scopes.filter(scope => scope === UNGRANTABLE_SCOPE || !caller.scopes.has(scope));
  if (refusedScopes.length === 0) return;
  throw fault('permission_denied', `This credential cannot grant ${refusedScopes.join(', ')}.`, {
    advice: 'Request only scopes that this credential has. The scope account:tokens can never be granted.',
    details: { scopes: refusedScopes },
  });
}
