// Shows why a session failed or timed out, and where to look next.
import { Link } from '@tanstack/react-router';
import type { EndReason, Session } from '../../../contract/sessions.ts';
import { endReasonWords } from '../ui/end-reasons.ts';
import { Icon } from '../ui/icon.tsx';
import { TimeText } from '../ui/time.tsx';

const ADVICE: Readonly<Partial<Record<EndReason, string>>> = {
  crashed: 'The replay opens at the last frame. The Console and Network tabs show what happened before the crash.',
  out_of_memory:
    'The pages needed more memory than a session may use. Open fewer at a time, or ask the operator for a higher limit.',
  start_failed:
    'Create the session again. If this happens again, ask the operator to look up the reason in the log of the server.',
  egress_limit:
    'The Network tab shows what was transferred. You can set a larger egressBytes when you create a session.',
  credit_exhausted: 'An owner of the application can buy credit, or the operator can grant it.',
  disk_limit: 'Downloads and data stored by pages filled the disk of the session.',
  timed_out: 'You can set a longer timeout when you create a session, up to the limit of the application.',
  connect_timeout: 'Connect sooner after creating the session, or create it with keepAlive.',
  service_restart: 'The restarted service could not continue with the browser. Create the session again.',
  host_lost:
    'The machine that was running the session stopped responding. Data that was already stored is kept. Create the session again.',
};

export function EndBanner({ app, session }: { readonly app: string; readonly session: Session }) {
  const { id, status, endReason, endedAt } = session;
  if (!endReason || (status !== 'ERROR' && status !== 'TIMED_OUT')) return null;
  const isError = status === 'ERROR';
  return (
    <section
      aria-label="Why the session ended"
      className={`mb-5 flex gap-3 rounded-lg border px-4 py-3 ${isError ? 'border-bad/40 bg-bad-soft' : 'border-warn/40 bg-warn-soft'}`}
    >
      <span className={`mt-0.5 ${isError ? 'text-bad' : 'text-warn'}`}>
        <Icon name="warning" />
      </span>
      <div className="min-w-0 text-sm">
        <p className="font-semibold">
          {endReasonWords(endReason)}
          {endedAt && (
            <span className="ml-2 font-normal text-soft">
              <TimeText time={endedAt} />
            </span>
          )}
        </p>
        <p className="text-soft">
          {ADVICE[endReason]}{' '}
          <Link
            to="/a/$app/sessions/$id"
            params={{ app, id }}
            search={{ tab: 'events' }}
            className="text-accent underline underline-offset-2"
          >
            See its events
          </Link>
        </p>
      </div>
    </section>
  );
}
