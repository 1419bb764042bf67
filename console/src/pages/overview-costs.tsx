// The cost of sessions: in total, and by the agent key that created them.
import { Link } from '@tanstack/react-router';
import type { ApplicationUsage, KeyUsage } from '../../../contract/usage.ts';
import { FigureTable } from '../ui/chart.tsx';
import { Facts, Panel } from '../ui/page.tsx';
import { bytesWords } from '../ui/time.tsx';

/** For example, `45 s`, `12.5 min` or `3.2 h`. */
export function timeWords(seconds: number): string {
  if (seconds < 60) return `${Number(seconds.toFixed(1))} s`;
  if (seconds < 3600) return `${Number((seconds / 60).toFixed(1))} min`;
  return `${Number((seconds / 3600).toFixed(1))} h`;
}

export const TotalUsage = ({ usage: { total } }: { readonly usage: ApplicationUsage }) => (
  <Panel title="Used">
    <Facts
      facts={[
        ['Browser time', timeWords(total.browserSeconds)],
        ['Processor time', timeWords(total.cpuSeconds)],
        ['Received', bytesWords(total.bytesReceived)],
        ['Sent', bytesWords(total.bytesSent)],
      ]}
    />
    <p className="border-t border-line px-4 py-2 text-xs text-soft">
      Processor time and bytes are counted when a session ends.
    </p>
  </Panel>
);

const keyCells = (key: KeyUsage): readonly string[] => [
  ...[String(key.created), String(key.failed), timeWords(key.browserSeconds), timeWords(key.cpuSeconds)],
  bytesWords(key.bytesReceived + key.bytesSent),
];

export const KeyShares = ({ app, usage: { keys } }: { readonly app: string; readonly usage: ApplicationUsage }) =>
  keys.length === 0 ? null : (
    <Panel title="By agent key">
      <div className="overflow-x-auto px-2 py-1">
        <FigureTable
          caption="Usage by agent key"
          headings={['Agent key', 'Sessions', 'Failed', 'Browser time', 'Processor', 'Network']}
          rows={keys.map(key => ({
            key: key.keyId,
            name: (
              <Link
                to="/a/$app/sessions"
                params={{ app }}
                search={{ key: key.keyId }}
                className="underline decoration-line-strong underline-offset-2 hover:text-accent"
              >
                {key.name ?? `deleted key ${key.keyId.slice(0, 8)}`}
              </Link>
            ),
            cells: keyCells(key),
          }))}
        />
      </div>
    </Panel>
  );
