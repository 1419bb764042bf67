// A button that copies text and shows that the text was copied.
import { useEffect, useState } from 'react';
import { Icon } from './icon.tsx';

const COPIED_DURATION_MS = 1_600;

export function CopyButton({
  text,
  label,
  className = '',
}: {
  readonly text: string;
  readonly label: string;
  readonly className?: string;
}) {
  const [copyState, setCopyState] = useState<'copied' | 'failed' | undefined>();
  useEffect(() => {
    if (copyState === undefined) return;
    const timer = setTimeout(() => setCopyState(undefined), COPIED_DURATION_MS);
    return () => clearTimeout(timer);
  }, [copyState]);
  const copy = (): void => {
    copyText(text).then(
      () => setCopyState('copied'),
      () => setCopyState('failed'),
    );
  };
  return (
    <button
      type="button"
      onClick={copy}
      aria-label={label}
      title={label}
      className={`inline-flex size-7 shrink-0 items-center justify-center rounded text-faint transition-colors hover:bg-sunk hover:text-ink ${className}`}
    >
      <Icon name={copyState === 'copied' ? 'check' : copyState === 'failed' ? 'warning' : 'copy'} size={15} />
      <span role="status" className="sr-only">
        {copyState === 'copied' ? 'Copied' : copyState === 'failed' ? 'Could not copy' : ''}
      </span>
    </button>
  );
}

/**
 * The clipboard API exists in secure contexts only. Elsewhere, the text is selected and copied with the browser's copy
 * command.
 */
async function copyText(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.createElement('textarea');
  area.value = text;
  area.className = 'sr-only';
  document.body.append(area);
  area.select();
  const isCopied = document.execCommand('copy');
  area.remove();
  if (!isCopied) throw new Error('this browser does not permit copying');
}
