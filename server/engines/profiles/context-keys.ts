// The data key of each context is random, and only its sealed form is stored. If the sealed key is deleted, data that
// was sealed with the data key can no longer be read.
import type { Secret } from '../../kit/secret.ts';

export type DataKey = Secret<Buffer>;

export interface ContextOwner {
  readonly id: string;
  readonly applicationId: string;
}

export interface ContextKeys {
  wrap(context: ContextOwner, key: DataKey): Promise<Buffer>;
  /** Throws if the key was wrapped for another context. */
  unwrap(context: ContextOwner, wrapped: Buffer): Promise<DataKey>;
}
