// Shows a new secret, which cannot be shown again.
import { useState } from 'react';
import { Button } from './button.tsx';
import { CodeBlock } from './code-block.tsx';
import { Dialog } from './dialog.tsx';
import { CheckField } from './form.tsx';

export function SecretDialog({
  title,
  secret,
  secretKind: secretName,
  close,
}: {
  readonly title: string;
  readonly secret: string;
  /** The kind of secret, such as `agent key` or `token`. Part of the label of the copy button. */
  readonly secretKind: string;
  readonly close: () => void;
}) {
  const [isStored, setIsStored] = useState(false);
  return (
    <Dialog
      open
      onClose={() => isStored && close()}
      title={title}
      about="It cannot be shown again: only a hash is stored. Save it where your program can read it."
    >
      <CodeBlock code={secret} label={`the ${secretName}`} />
      <div className="mt-4 flex flex-wrap items-center justify-between gap-3">
        <CheckField label="I have stored it" checked={isStored} onChange={event => setIsStored(event.target.checked)} />
        <Button look="primary" disabled={!isStored} onClick={close}>
          Done
        </Button>
      </div>
    </Dialog>
  );
}
