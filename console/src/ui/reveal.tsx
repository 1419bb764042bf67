// Shows a new secret, which cannot be shown again.
import { useState } from 'react';
import { Button } from './button.tsx';
import { CodeBlock } from './code-block.tsx';
import { Dialog } from './dialog.tsx';
import { CheckField } from './form.tsx';

export function Reveal({
  title,
  secret,
  what,
  close,
}: {
  readonly title: string;
  readonly secret: string;
  /** What the copy button copies: `agent key`, `token`. */
  readonly what: string;
  readonly close: () => void;
}) {
  const [stored, setStored] = useState(false);
  return (
    <Dialog
      open
      onClose={() => stored && close()}
      title={title}
      about="It cannot be shown again: only a hash is stored. Save it where your program can read it."
    >
      <CodeBlock code={secret} label={`the ${what}`} />
      <div className="mt-4 flex flex-wrap items-center justify-between gap-3">
        <CheckField label="I have stored it" checked={stored} onChange={event => setStored(event.target.checked)} />
        <Button look="primary" disabled={!stored} onClick={close}>
          Done
        </Button>
      </div>
    </Dialog>
  );
}
