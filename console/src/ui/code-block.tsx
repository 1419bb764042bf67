// A code block with a copy button. Long lines are wrapped.
import { CopyButton } from './copy-button.tsx';

export const CodeBlock = ({
  code,
  copyText: copied = code,
  label,
}: {
  readonly code: string;
  /** The text to copy, if the shown text is shortened or has its secrets hidden. Default: the shown text. */
  readonly copyText?: string;
  readonly label: string;
}) => (
  <figure className="relative overflow-hidden rounded-lg bg-code text-code-ink" aria-label={label}>
    <pre className="py-3.5 pr-12 pl-4 font-mono text-xs leading-relaxed break-words whitespace-pre-wrap">
      <code>{code}</code>
    </pre>
    <CopyButton
      text={copied}
      label={`Copy ${label}`}
      className="!absolute top-2 right-2 !text-code-soft hover:!bg-white/10 hover:!text-code-ink"
    />
  </figure>
);
