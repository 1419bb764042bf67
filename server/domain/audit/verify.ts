// Checks the seals of every chain and reports the first entry that is missing or changed. Trusts the signing keys in
// the vault, and nothing else in the database.
import type { SealRow } from '../../engines/store/rows/audit.ts';
import type { Store } from '../../engines/store/store.ts';
import { addMs, type Clock } from '../../kit/clock.ts';
import { isObject, type Json } from '../../kit/json.ts';
import type { SigningKeys } from '../signing/signing-keys.ts';
import { entryDigest, listDigest, SEAL_TYPE, sealDigest } from './seal-content.ts';
import type { SealHead, SealHeads } from './seal-heads.ts';

/**
 * Number of days after which entries may be removed. Of the seals that are older than this, only the newest seal of
 * each chain is kept.
 */
const RETENTION_DAYS = 400;
const DAY_MS = 24 * 3600_000;
const SEALS_PER_QUERY = 10;
const ENTRIES_PER_QUERY = 1_000;

export interface AuditProblem {
  /** Id of the application, or the nil id for entries that belong to no application. */
  readonly chain: string;
  readonly what: 'entry' | 'seal';
  readonly number: number;
  readonly how: 'missing' | 'changed';
}

export interface AuditVerdict {
  readonly chains: number;
  readonly seals: number;
  readonly entries: number;
  /** Entries that are too new to have a seal. */
  readonly unsealed: number;
  /** The first problem in each chain. */
  readonly problems: readonly AuditProblem[];
}

export interface VerifyParts {
  readonly store: { readonly audit: Pick<Store['audit'], 'chains' | 'entriesAfter' | 'sealsAfter'> };
  readonly keys: Pick<SigningKeys, 'verify'>;
  readonly heads: Pick<SealHeads, 'read'>;
  readonly clock: Clock;
}

export async function verifyAudit(parts: VerifyParts): Promise<AuditVerdict> {
  const heads = await parts.heads.read();
  const chains = new Set([...(await parts.store.audit.chains()), ...heads.keys()]);
  const checks: ChainCheck[] = [];
  for (const chain of [...chains].sort()) {
    const check = new ChainCheck(parts, chain, heads.get(chain));
    await check.run();
    checks.push(check);
  }
  const sum = (countOf: (walk: ChainCheck) => number): number =>
    checks.reduce((total, walk) => total + countOf(walk), 0);
  return {
    chains: checks.length,
    seals: sum(({ sealCount: seals }) => seals),
    entries: sum(({ entryCount: entries }) => entries),
    unsealed: sum(({ unsealedCount: unsealed }) => unsealed),
    problems: checks.flatMap(({ problem }) => problem ?? []),
  };
}

class ChainCheck {
  readonly #parts: VerifyParts;
  readonly #chain: string;
  readonly #head: SealHead | undefined;
  readonly #forgottenBefore: Date;
  #previousSeal: SealRow | undefined;
  sealCount = 0;
  entryCount = 0;
  unsealedCount = 0;
  problem: AuditProblem | undefined;

  constructor(parts: VerifyParts, chain: string, head: SealHead | undefined) {
    this.#parts = parts;
    this.#chain = chain;
    this.#head = head;
    this.#forgottenBefore = addMs(parts.clock.now(), -RETENTION_DAYS * DAY_MS);
  }

  /** Checks the chain up to the first problem. */
  async run(): Promise<void> {
    const { audit } = this.#parts.store;
    for (;;) {
      const seals = await audit.sealsAfter(this.#chain, this.#previousSeal?.number ?? 0, SEALS_PER_QUERY);
      for (const seal of seals) if (!(await this.#checkSeal(seal))) return;
      if (seals.length === 0) break;
    }
    const lastSealNumber = this.#previousSeal?.number ?? 0;
    if (this.#head && this.#head.number > lastSealNumber) return this.#report('seal', lastSealNumber + 1, 'missing');
    await this.#checkUnsealedEntries();
  }

  async #checkSeal(seal: SealRow): Promise<boolean> {
    const priorSeal = this.#previousSeal;
    const isOld = seal.at < this.#forgottenBefore;
    // The first seal may have a number above 1 only if it is so old that earlier seals may have been removed.
    const expectedNumber = priorSeal ? priorSeal.number + 1 : isOld ? seal.number : 1;
    if (seal.number !== expectedNumber) this.#report('seal', expectedNumber, 'missing');
    else if (!(await this.#isGenuine(seal, isOld))) this.#report('seal', seal.number, 'changed');
    else await this.#compareEntries(seal, isOld);
    if (this.problem) return false;
    this.#previousSeal = seal;
    this.sealCount += 1;
    return true;
  }

  /** Whether the signature is valid and the row agrees with the signed content. */
  async #isGenuine(seal: SealRow, isOld: boolean): Promise<boolean> {
    const signedPayload = await this.#parts.keys.verify(seal.jws, SEAL_TYPE);
    const content = signedPayload && contentOf(signedPayload);
    if (!content) return false;
    const priorSeal = this.#previousSeal;
    const digests = digestsOf(seal);
    const isNext = priorSeal
      ? content.previous === sealDigest(priorSeal.jws)
      : isOld || (seal.number === 1 && content.previous === undefined);
    const headDigest = this.#head?.number === seal.number ? this.#head.digest : undefined;
    return (
      isNext &&
      (headDigest === undefined || headDigest === sealDigest(seal.jws)) &&
      content.chain === this.#chain &&
      content.number === seal.number &&
      content.first === seal.firstNumber &&
      content.last === seal.lastNumber &&
      content.count === digests.length &&
      content.count === seal.lastNumber - seal.firstNumber + 1 &&
      content.at === seal.at.toISOString() &&
      content.entries === listDigest(digests)
    );
  }

  async #compareEntries(seal: SealRow, isOld: boolean): Promise<void> {
    const expectedNumber = (this.#previousSeal?.lastNumber ?? (isOld ? seal.firstNumber - 1 : 0)) + 1;
    if (seal.firstNumber !== expectedNumber) return this.#report('entry', expectedNumber, 'missing');
    const rows = await this.#parts.store.audit.entriesAfter(this.#chain, seal.firstNumber - 1, seal.rowDigests.length);
    const rowByNumber = new Map(rows.map(row => [row.number, row]));
    for (const [index, digest] of digestsOf(seal).entries()) {
      const number = seal.firstNumber + index;
      const row = rowByNumber.get(number);
      if (!row && !isOld) return this.#report('entry', number, 'missing');
      if (row && entryDigest(row) !== digest) return this.#report('entry', number, 'changed');
      if (row) this.entryCount += 1;
    }
  }

  /** Checks that the entries without a seal have no gaps in their numbers. */
  async #checkUnsealedEntries(): Promise<void> {
    let number = this.#previousSeal?.lastNumber ?? 0;
    for (;;) {
      const rows = await this.#parts.store.audit.entriesAfter(this.#chain, number, ENTRIES_PER_QUERY);
      for (const row of rows) {
        if (row.number !== number + 1) return this.#report('entry', number + 1, 'missing');
        number = row.number;
      }
      this.entryCount += rows.length;
      this.unsealedCount += rows.length;
      if (rows.length === 0) return;
    }
  }

  #report(what: AuditProblem['what'], number: number, how: AuditProblem['how']): void {
    this.problem ??= { chain: this.#chain, what, number, how };
  }
}

const digestsOf = ({ rowDigests }: SealRow): readonly string[] =>
  rowDigests.map(digest => `sha256:${digest.toString('hex')}`);

/** Parses the content of a seal. The content was signed by this installation, so it has the expected form. */
function contentOf(payload: Buffer): { readonly [name: string]: Json } | undefined {
  const content: unknown = JSON.parse(payload.toString());
  return isObject(content) ? content : undefined;
}
