// The current usage of an application, with its limits.
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { Limits } from '../../../contract/limits.ts';
import { bytesWords } from '../ui/time.tsx';

export const CurrentUsage = ({
  app,
  limits: { usage, effective },
}: {
  readonly app: string;
  readonly limits: Limits;
}) => {
  const [currentUse, effectiveLimits] = [usage.browsers, effective.browsers];
  return (
    <section
      aria-label="Now"
      className="grid grid-cols-2 gap-px overflow-hidden rounded-lg border border-line bg-line @min-[680px]:grid-cols-4"
    >
      <Tile
        name={
          <Link
            to="/a/$app/sessions"
            params={{ app }}
            search={{ show: 'open' }}
            className="underline decoration-line-strong underline-offset-2 hover:text-ink"
          >
            Sessions now
          </Link>
        }
        used={currentUse.maxConcurrent}
        max={effectiveLimits.maxConcurrent}
      />
      <Tile name="Creates waiting" used={currentUse.maxWaiting} max={effectiveLimits.maxWaiting} />
      <Tile name="Stored" used={currentUse.maxStoredBytes} max={effectiveLimits.maxStoredBytes} words={bytesWords} />
      <Tile
        name="Network today"
        used={currentUse.egressBytesPerDay}
        max={effectiveLimits.egressBytesPerDay}
        words={bytesWords}
      />
    </section>
  );
};

const Tile = ({
  name,
  used,
  max,
  words = String,
}: {
  readonly name: ReactNode;
  readonly used: number;
  readonly max: number;
  readonly words?: (value: number) => string;
}) => {
  const share = max > 0 ? Math.min(1, used / max) : 0;
  return (
    <div className="bg-raised px-4 py-3">
      <p className="text-sm text-soft">{name}</p>
      <p className="mt-0.5 text-xl font-semibold tracking-tight tabular-nums">{words(used)}</p>
      <p className="text-xs text-soft tabular-nums">
        of {words(max)}
        {share >= 1 && <span className="font-medium text-warn"> – limit reached</span>}
      </p>
      <div aria-hidden="true" className="mt-2 h-1 overflow-hidden rounded-full bg-sunk">
        <div className={`h-full ${share >= 1 ? 'bg-warn' : 'bg-accent'}`} style={{ width: `${share * 100}%` }} />
      </div>
    </div>
  );
};
