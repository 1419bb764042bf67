// A dialog that asks for confirmation of an operation. Stays open until the operation succeeds or the user cancels.
import { useMutation } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Button } from './button.tsx';
import { Dialog } from './dialog.tsx';
import { FormError } from './states.tsx';

export function ConfirmDialog({
  title,
  children,
  action,
  onConfirm: act,
  close,
}: {
  readonly title: string;
  readonly children: ReactNode;
  /** The text of the button that confirms the operation. */
  readonly action: string;
  readonly onConfirm: () => Promise<unknown>;
  readonly close: () => void;
}) {
  const work = useMutation({ mutationFn: act, onSuccess: close });
  return (
    <Dialog open onClose={close} title={title}>
      <div className="text-soft">{children}</div>
      <div className="mt-3">
        <FormError error={work.error} />
      </div>
      <div className="mt-5 flex justify-end gap-2">
        <Button onClick={close}>Cancel</Button>
        <Button look="danger" busy={work.isPending} onClick={() => work.mutate()}>
          {action}
        </Button>
      </div>
    </Dialog>
  );
}
