// A filter with a few choices.
import type { ReactNode } from 'react';

/** A filter that is highlighted while it is set. */
export const Choice = ({
  label,
  value = '',
  choose,
  any,
  onPointerOrFocus,
  children,
}: {
  readonly label: string;
  readonly value: string | undefined;
  readonly choose: (value: string) => void;
  readonly any: string;
  /** Called when the pointer or focus reaches the choice. */
  readonly onPointerOrFocus?: () => void;
  readonly children: ReactNode;
}) => (
  <select
    aria-label={label}
    value={value}
    onChange={event => choose(event.target.value)}
    onFocus={onPointerOrFocus}
    onPointerEnter={onPointerOrFocus}
    className={`h-10 max-w-40 min-w-0 truncate rounded-md border px-2 text-sm max-md:grow md:h-8 ${
      value === '' ? 'border-line-strong bg-raised text-soft' : 'border-accent bg-accent-soft font-medium text-accent'
    }`}
  >
    <option value="">{any}</option>
    {children}
  </select>
);
