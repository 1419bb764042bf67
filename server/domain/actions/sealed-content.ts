// Seals the content of Actions with the vault, because an input may contain a password.
import type { ActionContent } from '../../../contract/actions.ts';
import type { ActionRow } from '../../engines/store/rows/actions.ts';
import type { Vault } from '../../engines/vault/vault.ts';
import { parseJson } from '../../kit/foreign.ts';
import { digestOfContent } from './content.ts';

type SealedAction = Pick<ActionRow, 'id' | 'applicationId' | 'digest' | 'sealedContent'>;

export class SealedContent {
  readonly #vault: Pick<Vault, 'seal' | 'open'>;

  constructor(vault: Pick<Vault, 'seal' | 'open'>) {
    this.#vault = vault;
  }

  seal(row: Pick<ActionRow, 'id' | 'applicationId'>, content: ActionContent): Promise<Buffer> {
    return this.#vault.seal(placeOf(row), Buffer.from(JSON.stringify(content)));
  }

  /** Returns undefined if the content is no longer kept. */
  async open(row: SealedAction): Promise<ActionContent | undefined> {
    if (!row.sealedContent) return undefined;
    const text = (await this.#vault.open(placeOf(row), row.sealedContent)).reveal();
    // The text was written by `seal`. The comparison with the digest confirms this.
    const content = parseJson(text) as unknown as ActionContent;
    if (digestOfContent(content) !== row.digest)
      throw new Error(`the content of the Action ${row.id} does not match its digest`);
    return content;
  }

  /** Returns the content of an Action that has not ended. */
  async require(row: SealedAction): Promise<ActionContent> {
    const content = await this.open(row);
    if (!content) throw new Error(`the Action ${row.id} has no content`);
    return content;
  }
}

const placeOf = ({ id, applicationId }: Pick<ActionRow, 'id' | 'applicationId'>) => ({
  ...{ owner: applicationId, kind: 'action', id, version: 1 },
});
