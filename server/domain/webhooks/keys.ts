// The keys of a webhook. The private keys are sealed in the vault. For a day after a rotation, messages are signed with
// both the old and the new key.
import type { WebhookChange, WebhookRow } from '../../engines/store/rows/webhooks.ts';
import type { SealBinding, Vault } from '../../engines/vault/vault.ts';
import type { newWebhookKey, webhookSignature } from '../../engines/vault/webhook-keys.ts';
import { addMs } from '../../kit/clock.ts';
import type { Secret } from '../../kit/secret.ts';

const FORMER_KEY_VALIDITY_MS = 24 * 3_600_000;

export interface WebhookKeysParts {
  readonly vault: Pick<Vault, 'seal' | 'open'>;
  readonly engine: {
    readonly newWebhookKey: typeof newWebhookKey;
    readonly webhookSignature: typeof webhookSignature;
  };
}

type Owner = Pick<WebhookRow, 'id' | 'applicationId'>;

export class WebhookKeys {
  readonly #parts: WebhookKeysParts;

  constructor(parts: WebhookKeysParts) {
    this.#parts = parts;
  }

  async createFirst(owner: Owner): Promise<Pick<WebhookRow, 'keyVersion' | 'publicKey' | 'sealedKey'>> {
    return { keyVersion: 1, ...(await this.#createKey(owner, 1)) };
  }

  async createNext(row: WebhookRow, now: Date): Promise<WebhookChange> {
    const keyVersion = row.keyVersion + 1;
    return {
      ...{ keyVersion, ...(await this.#createKey(row, keyVersion)) },
      ...{
        formerPublicKey: row.publicKey,
        formerSealedKey: row.sealedKey,
        formerUntil: addMs(now, FORMER_KEY_VALIDITY_MS),
      },
    };
  }

  /** Signs with the current key and, for a day after a rotation, also with the previous key. */
  async sign(row: WebhookRow, content: string, now: Date): Promise<readonly string[]> {
    const { webhookSignature } = this.#parts.engine;
    const keys = [await this.#open(row, row.keyVersion, row.sealedKey)];
    if (row.formerSealedKey && row.formerUntil && now < row.formerUntil)
      keys.push(await this.#open(row, row.keyVersion - 1, row.formerSealedKey));
    return keys.map(key => webhookSignature(key, content));
  }

  async #createKey(owner: Owner, version: number): Promise<Pick<WebhookRow, 'publicKey' | 'sealedKey'>> {
    const { publicKey, privateKey } = this.#parts.engine.newWebhookKey();
    return { publicKey, sealedKey: await this.#parts.vault.seal(placeOf(owner, version), privateKey.reveal()) };
  }

  #open(owner: Owner, version: number, sealed: Buffer): Promise<Secret<Buffer>> {
    return this.#parts.vault.open(placeOf(owner, version), sealed);
  }
}

const placeOf = ({ id, applicationId }: Owner, version: number): SealBinding => ({
  ...{ owner: applicationId, kind: 'webhook_key', id, version },
});
