// The status of a session as a colored word.
import type { Session, SessionStatus } from '../../../contract/sessions.ts';

const STATUSES: Readonly<Record<SessionStatus, { readonly word: string; readonly dot: string; readonly ink: string }>> =
  {
    PENDING: { word: 'Starting', dot: 'border-2 border-accent', ink: 'text-accent' },
    RUNNING: { word: 'Running', dot: 'bg-good', ink: 'text-good' },
    COMPLETED: { word: 'Completed', dot: 'bg-line-strong', ink: 'text-soft' },
    TIMED_OUT: { word: 'Timed out', dot: 'bg-warn', ink: 'text-warn' },
    ERROR: { word: 'Error', dot: 'bg-bad', ink: 'text-bad' },
  };

export const isOpen = ({ status }: Session): boolean => status === 'PENDING' || status === 'RUNNING';

export const statusWord = (status: SessionStatus): string => STATUSES[status].word;

export const Status = ({ status }: { readonly status: SessionStatus }) => {
  const { word, dot, ink } = STATUSES[status];
  return (
    <span className={`inline-flex items-center gap-2 text-sm font-medium whitespace-nowrap ${ink}`}>
      <span aria-hidden="true" className={`size-2 rounded-full ${dot}`} />
      {word}
    </span>
  );
};
