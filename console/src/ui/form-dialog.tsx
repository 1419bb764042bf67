// A dialog with a form: fields, an error message, and buttons to submit and cancel. Stays open until the form has been
// submitted or canceled.
import type { FormEvent, ReactNode } from 'react';
import { Button } from './button.tsx';
import { Dialog } from './dialog.tsx';
import { FormError } from './states.tsx';

export interface FormWork {
  readonly error: unknown;
  readonly isPending: boolean;
  mutate(): void;
  reset(): void;
}

export function FormDialog({
  title,
  action,
  work,
  close,
  disabled = false,
  children,
}: {
  readonly title: string;
  /** The text of the submit button. */
  readonly action: string;
  readonly work: FormWork;
  readonly close: () => void;
  readonly disabled?: boolean;
  readonly children: ReactNode;
}) {
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    work.mutate();
  };
  return (
    <Dialog open onClose={close} title={title}>
      <form onSubmit={submit} onInput={() => work.error !== null && work.reset()} className="grid gap-4">
        {children}
        <FormError error={work.error} />
        <div className="flex justify-end gap-2">
          <Button onClick={close}>Cancel</Button>
          <Button type="submit" look="primary" busy={work.isPending} disabled={disabled}>
            {action}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
