// The data key of each context is random, and is stored only in sealed form. Deleting the sealed key makes everything
// unreadable that was sealed with the data key.
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
