// Shows whether the page is updated live.
import type { StreamState } from '../api/event-stream.ts';

const STATE_LABELS: Readonly<Record<StreamState, { readonly text: string; readonly dot: string }>> = {
  connecting: { text: 'Connecting', dot: 'bg-line-strong' },
  live: { text: 'Live', dot: 'bg-good' },
  broken: { text: 'Not live. Reconnecting', dot: 'bg-warn' },
  refused: { text: 'Not live. Reload the page', dot: 'bg-warn' },
  over: { text: 'Ended', dot: 'bg-line-strong' },
};

export const LiveMark = ({ state }: { readonly state: StreamState }) => (
  <span role="status" className="inline-flex items-center gap-2 text-sm text-soft">
    <span aria-hidden="true" className={`size-1.5 rounded-full ${STATE_LABELS[state].dot}`} />
    {STATE_LABELS[state].text}
  </span>
);
