// Labels for operations: kind, effect, approval, state and price.
import type { ConfiguredOperation, OperationApproval } from '../../../contract/configured-operations.ts';
import type { OperationEffect } from '../../../contract/invocations.ts';
import { creditWords } from './invocation-words.tsx';

export const KIND_WORDS: Readonly<Record<ConfiguredOperation['kind'], string>> = {
  managed: 'Built in',
  http: 'HTTP call',
  browser: 'Steps in a browser',
};

export const EFFECT_WORDS: Readonly<Record<OperationEffect, string>> = {
  read: 'Only reads',
  write: 'Changes something',
  irreversible: 'Cannot be undone',
};

export const APPROVAL_WORDS: Readonly<Record<OperationApproval, string>> = {
  none: 'Nobody',
  end_user: 'The end user',
  member: 'A member',
  owner: 'An owner',
};

/** Converts the value of a select to the key of a choice. */
export const keyIn = <Key extends string>(labels: Readonly<Record<Key, string>>, value: string, fallback: Key): Key =>
  (Object.keys(labels) as Key[]).find(key => key === value) ?? fallback; // Object.keys() returns strings.

export const hasDraft = ({ status, revision, publishedRevision }: ConfiguredOperation): boolean =>
  status === 'draft' || (publishedRevision !== undefined && publishedRevision !== revision);

/** Whether agents with a grant can call the operation. */
export const isCallable = ({ status, enabled = true }: ConfiguredOperation): boolean =>
  status === 'published' && enabled;

const STATES = {
  published: { word: 'Published', dot: 'bg-good', ink: 'text-good' },
  draft: { word: 'Draft', dot: 'border-2 border-accent', ink: 'text-accent' },
  withdrawn: { word: 'Withdrawn', dot: 'bg-line-strong', ink: 'text-soft' },
  off: { word: 'Switched off', dot: 'bg-line-strong', ink: 'text-soft' },
} as const;

export const OperationState = ({ operation }: { readonly operation: ConfiguredOperation }) => {
  const { kind, status, revision, publishedRevision } = operation;
  const { word, dot, ink } = STATES[operation.enabled === false ? 'off' : status];
  return (
    <span className="inline-flex flex-wrap items-center gap-x-2 text-sm">
      <span className={`inline-flex items-center gap-2 font-medium whitespace-nowrap ${ink}`}>
        <span aria-hidden="true" className={`size-2 rounded-full ${dot}`} />
        {word}
        {kind !== 'managed' && status === 'published' && ` r${publishedRevision}`}
      </span>
      {kind !== 'managed' && publishedRevision !== undefined && publishedRevision !== revision && (
        <span className="whitespace-nowrap text-accent">draft r{revision}</span>
      )}
    </span>
  );
};

export const priceWords = ({ price: { microCredits } }: Pick<ConfiguredOperation, 'price'>): string =>
  microCredits === 0 ? 'no price' : `${creditWords(microCredits)} a call`;
