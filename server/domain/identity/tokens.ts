// Personal access tokens: issued with at most the rights of the one that asks, shown once, revoked at once.
import { PAGE_LIMIT_DEFAULT, type PageQuery } from '../../../contract/common.ts';
import {
  type CreateToken,
  type IssuedToken,
  MANAGE_TOKENS_SCOPE,
  TOKEN_LIFE_DEFAULT_DAYS,
  TOKEN_LIFE_MAX_DAYS,
  TOKENS_PER_ACCOUNT_MAX,
  type Token,
  type TokenPage,
} from '../../../contract/tokens.ts';
import type { TokenRow } from '../../engines/store/rows/credentials.ts';
import type { Store } from '../../engines/store/store.ts';
import { type Clock, plus } from '../../kit/clock.ts';
import { type AccountId, type ApplicationId, isUuid, newId, type TokenId } from '../../kit/ids.ts';
import type { Secret } from '../../kit/secret.ts';
import { fault, invalidRequest, limitReached, notFound, scopeMissing } from '../faults.ts';
import type { Applications } from './applications.ts';
import type { AccountCaller } from './caller.ts';
import { covers } from './cidr.ts';
import { badEnd, cleanRanges, credentialView, futureEnd } from './credential-rules.ts';
import { mint } from './credentials.ts';
import { type Cursors, type ListName, pageOf } from './cursors.ts';
import { cleanName } from './names.ts';

const DAY_MS = 24 * 3600 * 1000;

/** A token may issue tokens, but never one that can issue more. */
const NEVER_HANDED_ON = MANAGE_TOKENS_SCOPE;

export interface TokensParts {
  readonly store: Pick<Store, 'tokens'>;
  readonly clock: Clock;
  readonly cursors: Cursors;
  readonly applications: Applications;
  /** Told of each token that was revoked, by the hex of its hash. */
  readonly changed: (hash: string) => void;
}

export class Tokens {
  readonly #parts: TokensParts;

  constructor(parts: TokensParts) {
    this.#parts = parts;
  }

  async create(caller: AccountCaller, wish: CreateToken): Promise<IssuedToken> {
    refuseMoreScopes(caller, wish.scopes);
    const applicationIds = await this.#confinement(caller, wish.applicationIds);
    const bounded = { ...wish, ...this.#bounds(caller, wish), ...(applicationIds ? { applicationIds } : {}) };
    const { row, token } = await this.issue(caller.accountId, bounded, caller.tokenId);
    return { ...this.#view(row), token: token.reveal() };
  }

  /** The same without a caller, with any scope: the command line. */
  async issue(accountId: AccountId, wish: CreateToken, issuedBy?: TokenId): Promise<{ row: TokenRow; token: Secret }> {
    const now = this.#parts.clock.now();
    const { hash, prefix, text } = mint('account');
    const row: TokenRow = {
      id: newId<TokenId>(now),
      accountId,
      name: cleanName(wish.name),
      prefix,
      hash,
      scopes: [...new Set(wish.scopes)],
      cidrAllow: cleanRanges(wish.cidrAllow),
      createdAt: now,
      expiresAt: endOf(wish.expiresAt, now),
      ...(wish.applicationIds ? { applicationIds: [...new Set(wish.applicationIds)] as ApplicationId[] } : {}),
      ...(issuedBy ? { issuedBy } : {}),
    };
    const outcome = await this.#parts.store.tokens.insert(row, TOKENS_PER_ACCOUNT_MAX);
    if (outcome === 'limit_reached') throw limitReached('living tokens in this account', TOKENS_PER_ACCOUNT_MAX);
    return { row, token: text };
  }

  /** A confined token sees itself and what it has issued, others all of the account. */
  async list(caller: AccountCaller, { limit = PAGE_LIMIT_DEFAULT, cursor }: PageQuery): Promise<TokenPage> {
    const { accountId, tokenId } = caller;
    const { store, clock, cursors } = this.#parts;
    const name: ListName = { list: 'tokens', owner: caller.applicationIds ? tokenId : accountId };
    const before = cursor === undefined ? {} : { before: cursors.read<TokenId>(name, cursor) };
    const rows = await store.tokens.list(accountId, clock.now(), {
      ...{ limit: limit + 1, ...before },
      ...(caller.applicationIds ? { of: tokenId } : {}),
    });
    return pageOf(
      rows,
      limit,
      row => this.#view(row),
      last => cursors.after(name, last),
    );
  }

  async current({ accountId, tokenId }: AccountCaller): Promise<Token> {
    return this.#view(await this.#get(accountId, tokenId));
  }

  /** Every token may revoke itself; others are for those that manage tokens, within their confinement. */
  async revoke(caller: AccountCaller, id: string): Promise<void> {
    const { accountId, tokenId } = caller;
    if (id !== tokenId && !caller.scopes.has(MANAGE_TOKENS_SCOPE)) throw scopeMissing([MANAGE_TOKENS_SCOPE]);
    const row = await this.#get(accountId, id);
    if (caller.applicationIds && row.id !== tokenId && row.issuedBy !== tokenId) throw notFound('Token', id);
    const ended = await this.#parts.store.tokens.revoke(accountId, row.id, this.#parts.clock.now());
    this.#parts.changed(row.hash.toString('hex'));
    if (!ended) throw notFound('Token', id);
  }

  /** The applications a new token is confined to: those asked for, each of which the caller must reach, or the caller's own. */
  async #confinement(caller: AccountCaller, asked: readonly string[] | undefined): Promise<string[] | undefined> {
    if (!asked) return caller.applicationIds ? [...caller.applicationIds] : undefined;
    const reached = await Promise.all(asked.map(id => this.#parts.applications.reaches(caller, id)));
    const issues = asked.flatMap((id, index) =>
      reached[index] ? [] : [{ path: `applicationIds[${index}]`, message: `names ${id}, which you do not reach` }],
    );
    if (issues.length > 0) throw invalidRequest(issues);
    return [...asked];
  }

  /** From where and until when: never wider and never longer than the caller itself. */
  #bounds(caller: AccountCaller, wish: CreateToken): Pick<CreateToken, 'cidrAllow' | 'expiresAt'> {
    const now = this.#parts.clock.now();
    const expiresAt = wish.expiresAt === undefined ? defaultEnd(caller, now) : wish.expiresAt;
    if (caller.expiresAt && new Date(expiresAt) > caller.expiresAt)
      throw badEnd(`is later than ${caller.expiresAt.toISOString()}, the end of the token that issues it`);
    const cidrAllow = cleanRanges(wish.cidrAllow);
    if (caller.cidrAllow.length === 0) return { expiresAt, cidrAllow };
    const issues = cidrAllow.flatMap((range, index) =>
      covers(caller.cidrAllow, range)
        ? []
        : [
            {
              path: `cidrAllow[${index}]`,
              message: `is ${range}, which the token that issues it may not be used from`,
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
    return {
      ...credentialView(row, this.#parts.clock.now()),
      kind: 'personal',
      ...(row.applicationIds ? { applicationIds: [...row.applicationIds] } : {}),
    };
  }
}

function defaultEnd({ expiresAt }: AccountCaller, now: Date): string {
  const end = plus(now, TOKEN_LIFE_DEFAULT_DAYS * DAY_MS);
  return (expiresAt && expiresAt < end ? expiresAt : end).toISOString();
}

function endOf(asked: string | undefined, now: Date): Date {
  const end = futureEnd(asked, now) ?? plus(now, TOKEN_LIFE_DEFAULT_DAYS * DAY_MS);
  const latest = plus(now, TOKEN_LIFE_MAX_DAYS * DAY_MS);
  if (end > latest)
    throw badEnd(`is more than ${TOKEN_LIFE_MAX_DAYS} days ahead; the latest is ${latest.toISOString()}`);
  return end;
}

function refuseMoreScopes(caller: AccountCaller, scopes: readonly string[]): void {
  const refused = scopes.filter(scope => scope === NEVER_HANDED_ON || !caller.scopes.has(scope));
  if (refused.length === 0) return;
  throw fault('permission_denied', `This token cannot hand on ${refused.join(', ')}.`, {
    advice: 'Request only scopes that the calling token has, and never account:tokens.',
    details: { scopes: refused },
  });
}
