// What the recorder needs of the channel on a target; engines/browser's ObservedTarget is one.
import type { JsonObject } from '../../kit/json.ts';
import type { Closeable } from '../../kit/scope.ts';

export interface TargetChannel {
  readonly id: string;
  readonly kind: string;
  readonly parent: TargetChannel | undefined;
  readonly isGone: boolean;
  send(method: string, params?: JsonObject, ms?: number): Promise<JsonObject>;
  post(method: string, params?: JsonObject): void;
  /** `picture`: of a frame of a screencast, instead of its `data`. */
  on(listener: (method: string, params: JsonObject, picture?: Buffer) => void): Closeable;
  whenGone(listener: () => void): void;
}

export const numberAt = (value: JsonObject, key: string): number => {
  const member = value[key];
  return typeof member === 'number' && Number.isFinite(member) ? member : 0;
};
