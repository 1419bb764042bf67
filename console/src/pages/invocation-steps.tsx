// The states that an invocation went through, with the time that each took.
import type { Invocation } from '../../../contract/invocations.ts';
import { ElapsedTime, TimeText } from '../ui/time.tsx';
import { STATUS_WORDS } from './invocation-filters.ts';
import { elapsedWords } from './invocation-words.tsx';

export const InvocationSteps = ({ invocation }: { readonly invocation: Invocation }) => {
  const { status, effect, error, createdAt, startedAt, endedAt, attempts } = invocation;
  const { word, dot, ink } = STATUS_WORDS[status];
  return (
    <ol className="px-4 py-3">
      <Step name="Accepted" dot="bg-line-strong" time={createdAt} hasNext />
      {startedAt && (
        <Step
          name="Started"
          dot="bg-line-strong"
          time={startedAt}
          elapsedText={elapsedWords(createdAt, startedAt)}
          hasNext
          more={attempts > 1 ? `${attempts} attempts` : undefined}
        />
      )}
      {endedAt ? (
        <Step
          name={word}
          dot={dot}
          ink={ink}
          time={endedAt}
          elapsedText={elapsedWords(startedAt ?? createdAt, endedAt)}
        >
          {error && (
            <div className="mt-1 text-xs leading-relaxed break-words">
              <p>
                <code className="font-mono">{error.code}</code>: {error.message}
              </p>
              {effect !== 'read' && <p className="text-soft">{PHASE_TEXTS[error.phase]}</p>}
            </div>
          )}
        </Step>
      ) : (
        <li className="flex items-center gap-3 text-sm">
          <span aria-hidden="true" className={`size-2 shrink-0 rounded-full motion-safe:animate-pulse ${dot}`} />
          <span className={`font-medium ${ink}`}>{word}</span>
          <ElapsedTime from={createdAt} />
        </li>
      )}
    </ol>
  );
};

const PHASE_TEXTS = {
  before: 'The effect had not started.',
  during: 'The effect may have happened.',
  after: 'The effect has happened.',
} as const;

const Step = ({
  name,
  dot,
  ink = '',
  time,
  elapsedText,
  more,
  hasNext = false,
  children,
}: {
  readonly name: string;
  readonly dot: string;
  readonly ink?: string;
  readonly time: string;
  readonly elapsedText?: string;
  readonly more?: string | undefined;
  readonly hasNext?: boolean;
  readonly children?: React.ReactNode;
}) => (
  <li className="grid grid-cols-[8px_minmax(0,1fr)] gap-x-3">
    <span aria-hidden="true" className="flex flex-col items-center">
      <span className={`mt-1.5 size-2 shrink-0 rounded-full ${dot}`} />
      {hasNext && <span className="mt-1 w-px grow bg-line-strong" />}
    </span>
    <div className={hasNext ? 'pb-4' : ''}>
      <p className="flex items-baseline justify-between gap-3 text-sm">
        <span className={`font-medium ${ink}`}>{name}</span>
        {elapsedText !== undefined && <span className="text-xs text-soft tabular-nums">after {elapsedText}</span>}
      </p>
      <p className="text-xs text-soft">
        <TimeText time={time} />
        {more && `, ${more}`}
      </p>
      {children}
    </div>
  </li>
);
