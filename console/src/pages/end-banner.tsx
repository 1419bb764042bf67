// Says why a session did not end well, and where to look next.
import { Link } from '@tanstack/react-router';
import type { EndReason, Session } from '../../../contract/sessions.ts';
import { endReasonWords } from '../ui/end-reasons.ts';
import { Icon } from '../ui/icon.tsx';
import { Moment } from '../ui/time.tsx';

const ADVICE: Readonly<Partial<Record<EndReason, string>>> = {
  crashed: 'The replay opens at the last picture. Console and network show what came before it.',
  out_of_memory:
    'Its pages needed more memory than a session may have. Open fewer at a time, or ask the operator for more.',
  start_failed: 'Create it again. If it happens again, the log of the service has the reason.',
  egress_limit: 'Network shows what was transferred. A create may set a larger egressBytes.',
  credit_exhausted: 'An owner of the application can buy credit, or the operator can give some.',
  disk_limit: 'Downloads and storage of its pages filled its disk.',
  timed_out: 'A create may set a longer timeout, up to the limit of the application.',
  connect_timeout: 'Connect sooner after the create, or create it with keepAlive.',
  service_restart: 'The browser could not be taken over. Create it again.',
  host_lost: 'The machine that ran it stopped answering. What it had stored is kept. Create it again.',
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
              <Moment time={endedAt} />
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
