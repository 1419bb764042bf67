// The part of a channel that the recorder uses. ObservedTarget of engines/browser implements it.
import type { JsonObject } from '../../kit/json.ts';
import type { Closeable } from '../../kit/scope.ts';

export interface TargetChannel {
  readonly id: string;
  readonly kind: string;
  /** The URL at the time of attaching. */
  readonly url: string;
  readonly parent: TargetChannel | undefined;
  readonly isGone: boolean;
  send(method: string, params?: JsonObject, timeoutMs?: number): Promise<JsonObject>;
  post(method: string, params?: JsonObject): void;
  /** `frameBytes` is the JPEG of a screencast frame. `params.data` is then empty. */
  on(listener: (method: string, params: JsonObject, frameBytes?: Buffer) => void): Closeable;
  whenGone(listener: () => void): void;
}

export const numberAt = (value: JsonObject, key: string): number => {
  const member = value[key];
  return typeof member === 'number' && Number.isFinite(member) ? member : 0;
};
