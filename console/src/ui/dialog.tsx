// A modal dialog: keeps the focus inside, and is closed by Escape.
import { Dialog as Base } from '@base-ui/react/dialog';
import { type ReactNode, useRef } from 'react';
import { IconButton } from './button.tsx';

export const Dialog = ({
  open,
  onClose,
  title,
  about,
  children,
}: {
  readonly open: boolean;
  readonly onClose: () => void;
  readonly title: string;
  readonly about?: ReactNode;
  readonly children: ReactNode;
}) => {
  const content = useRef<HTMLDivElement>(null);
  /**
   * Finds the first field, or the first button if there is no field. The initial focus must not be on the close button,
   * where Enter would close the dialog.
   */
  const findFirstControl = (): HTMLElement | null =>
    content.current?.querySelector<HTMLElement>('input:not(:disabled), select, textarea') ??
    content.current?.querySelector<HTMLElement>('button:not(:disabled)') ??
    null;
  return (
    <Base.Root open={open} onOpenChange={next => next || onClose()}>
      <Base.Portal>
        <Base.Backdrop className="fixed inset-0 z-40 bg-code/40" />
        <Base.Popup
          initialFocus={() => findFirstControl() ?? true}
          className="fixed inset-x-0 bottom-0 z-50 max-h-[92dvh] overflow-y-auto rounded-t-xl border border-line bg-raised p-5 shadow-2xl md:inset-x-auto md:top-[14vh] md:bottom-auto md:left-1/2 md:max-h-[76vh] md:w-[480px] md:-translate-x-1/2 md:rounded-xl"
        >
          <div className="mb-4 flex items-start justify-between gap-4">
            <div>
              <Base.Title className="text-lg font-semibold tracking-tight">{title}</Base.Title>
              {about && <Base.Description className="mt-1 text-sm text-soft">{about}</Base.Description>}
            </div>
            <Base.Close render={<IconButton label="Close" icon="close" className="-mt-1 -mr-1" />} />
          </div>
          <div ref={content}>{children}</div>
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  );
};
