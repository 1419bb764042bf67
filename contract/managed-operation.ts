// The part of the contract that describes a built-in operation.
import type { TSchema } from 'typebox';

export interface ManagedOperation {
  readonly title: string;
  readonly description: string;
  readonly effect: 'read' | 'write';
  readonly revision: number;
  readonly timeoutMs: number;
  readonly input: TSchema;
  readonly output: TSchema;
  readonly example: object;
}
