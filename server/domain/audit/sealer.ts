// Seals the new entries of each chain. A seal is a signature over the digests of the entries and over the previous
// seal. If an entry is changed or removed later, the entries no longer match the seal.
import type { AuditRow, SealRow } from '../../engines/store/rows/audit.ts';
import type { Store } from '../../engines/store/store.ts';
import { canonicalJson } from '../../kit/canonical-json.ts';
import type { Clock } from '../../kit/clock.ts';
import type { Log } from '../../kit/log.ts';
import type { SigningKeys } from '../signing/signing-keys.ts';
import { entryDigest, listDigest, SEAL_TYPE, type SealContent, sealDigest } from './seal-content.ts';
import type { SealHead, SealHeads } from './seal-heads.ts';

/** Maximum number of entries in one seal. */
const ENTRIES_MAX = 1_000;
const DIGEST_PREFIX = 'sha256:';

type SealerRows = 'unsealedChains' | 'entriesAfter' | 'sealsAfter' | 'lastSeal' | 'insertSeal';

export interface SealerParts {
  readonly store: { readonly audit: Pick<Store['audit'], SealerRows> };
  readonly keys: Pick<SigningKeys, 'sign'>;
  readonly heads: Pick<SealHeads, 'read' | 'advance'>;
  readonly clock: Clock;
  readonly log: Log;
}

export class Sealer {
  readonly #parts: SealerParts;

  constructor(parts: SealerParts) {
    this.#parts = parts;
  }

  async seal(): Promise<{ sealed: number }> {
    const { store, heads, log } = this.#parts;
    const storedHeads = await heads.read();
    const newHeads = new Map<string, SealHead>();
    let sealedCount = 0;
    for (const chain of await store.audit.unsealedChains()) {
      // If a chain has lost seals, its stored head is not changed, so that the loss stays visible.
      const isIntact = await this.#isHeadStored(chain, storedHeads.get(chain));
      if (!isIntact) log.error('audit.seals_missing', { chain });
      for (;;) {
        const seal = await this.#nextSeal(chain);
        if (!seal || !(await store.audit.insertSeal(seal))) break;
        if (isIntact) newHeads.set(chain, { number: seal.number, digest: sealDigest(seal.jws) });
        sealedCount += seal.rowDigests.length;
      }
    }
    if (newHeads.size > 0) await heads.advance(newHeads);
    return { sealed: sealedCount };
  }

  async #isHeadStored(chain: string, head: SealHead | undefined): Promise<boolean> {
    if (!head) return true;
    const [seal] = await this.#parts.store.audit.sealsAfter(chain, head.number - 1, 1);
    return seal?.number === head.number && sealDigest(seal.jws) === head.digest;
  }

  async #nextSeal(chain: string): Promise<SealRow | undefined> {
    const { store, keys, clock } = this.#parts;
    const previousSeal = await store.audit.lastSeal(chain);
    const rows = entriesBeforeGap(await store.audit.entriesAfter(chain, previousSeal?.lastNumber ?? 0, ENTRIES_MAX));
    const [firstRow, lastRow] = [rows[0], rows.at(-1)];
    if (!firstRow || !lastRow) return undefined;
    const at = clock.now();
    const digests = rows.map(entryDigest);
    const content: SealContent = {
      ...{
        chain,
        number: (previousSeal?.number ?? 0) + 1,
        ...(previousSeal ? { previous: sealDigest(previousSeal.jws) } : {}),
      },
      ...{ first: firstRow.number, firstId: firstRow.id, last: lastRow.number, lastId: lastRow.id },
      ...{ count: rows.length, entries: listDigest(digests), at: at.toISOString() },
    };
    return {
      ...{ chain, number: content.number, firstNumber: firstRow.number, lastNumber: lastRow.number, at },
      rowDigests: digests.map(digest => Buffer.from(digest.slice(DIGEST_PREFIX.length), 'hex')),
      jws: await keys.sign(SEAL_TYPE, Buffer.from(canonicalJson(content))),
    };
  }
}

/**
 * Returns the entries before the first gap in the numbers. If a gap were sealed, the removal of an entry that was not
 * sealed yet could not be detected.
 */
function entriesBeforeGap(rows: readonly AuditRow[]): readonly AuditRow[] {
  const startNumber = rows[0]?.number ?? 0;
  const gapIndex = rows.findIndex(({ number }, index) => number !== startNumber + index);
  return gapIndex === -1 ? rows : rows.slice(0, gapIndex);
}
