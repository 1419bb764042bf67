// A field for JSON. Each problem is a button that moves the cursor to its position in the text.
import { useId, useRef } from 'react';
import type { PlacedProblem } from '../json/places.ts';

/** If the text has more lines, the field scrolls. */
const ROWS_MAX = 24;

export function JsonField({
  label,
  hint,
  rows = 6,
  placeholder,
  value,
  onChange,
  readOnly = false,
  problems = [],
}: {
  readonly label: string;
  readonly hint?: string;
  readonly rows?: number;
  readonly placeholder?: string;
  readonly value: string;
  readonly onChange: (text: string) => void;
  readonly readOnly?: boolean;
  readonly problems?: readonly PlacedProblem[];
}) {
  const id = useId();
  const area = useRef<HTMLTextAreaElement>(null);
  const moveCursorTo = (offset = 0): void => {
    const element = area.current;
    if (!element) return;
    element.focus();
    element.setSelectionRange(offset, Math.max(offset + 1, lineEndOf(value, offset)));
    const line = value.slice(0, offset).split('\n').length - 1;
    element.scrollTop = Math.max(0, (line - 2) * (element.scrollHeight / Math.max(1, value.split('\n').length)));
  };
  const descriptionIds = [hint ? `${id}-hint` : '', problems.length > 0 ? `${id}-problems` : '']
    .filter(Boolean)
    .join(' ');
  return (
    <div className="min-w-0">
      <label htmlFor={id} className="mb-1 block text-sm font-medium">
        {label}
      </label>
      <textarea
        ref={area}
        {...{ id, placeholder, value, readOnly }}
        rows={Math.min(ROWS_MAX, Math.max(rows, value.split('\n').length))}
        onChange={event => onChange(event.target.value)}
        spellCheck={false}
        autoCapitalize="none"
        wrap="off"
        aria-invalid={problems.length > 0 || undefined}
        aria-describedby={descriptionIds || undefined}
        className="block w-full overflow-x-auto rounded-md border border-line-strong bg-raised px-2.5 py-1.5 font-mono text-xs leading-relaxed read-only:bg-sunk aria-invalid:border-bad"
      />
      {problems.length > 0 && (
        <ul id={`${id}-problems`} className="mt-1 grid gap-0.5 text-xs">
          {problems.map(({ message, offset }) => (
            <li key={message}>
              <button
                type="button"
                onClick={() => moveCursorTo(offset)}
                className="rounded text-left break-words text-bad underline decoration-dotted underline-offset-2"
              >
                {message}
              </button>
            </li>
          ))}
        </ul>
      )}
      {hint && (
        <p id={`${id}-hint`} className="mt-1 text-xs text-soft">
          {hint}
        </p>
      )}
    </div>
  );
}

const lineEndOf = (text: string, offset: number): number => {
  const end = text.indexOf('\n', offset);
  return end < 0 ? text.length : end;
};
