// The console messages of a session.
import { useMemo, useState } from 'react';
import { saveLog } from '../api/save-file.ts';
import { useSessionLogs } from '../api/use-session-logs.ts';
import { type ConsoleLine, consoleLines } from '../logs/console-lines.ts';
import { pageNames } from '../logs/marks.ts';
import { Button } from '../ui/button.tsx';
import { Choice } from '../ui/choice.tsx';
import { Rows } from '../ui/rows.tsx';
import { FormError } from '../ui/states.tsx';
import { clockTime, fullTime, utcTime } from '../ui/time.tsx';
import { LogFilters } from './log-filters.tsx';
import { LogsState } from './logs-state.tsx';

const ROW_HEIGHT_PX = 29;

const LEVEL_CLASSES: Readonly<Record<ConsoleLine['level'], string>> = {
  error: 'text-bad',
  warning: 'text-warn',
  info: 'text-ink',
};

export function ConsoleTab({
  app,
  id,
  isOpen,
}: {
  readonly app: string;
  readonly id: string;
  readonly isOpen: boolean;
}) {
  const { data, error, refetch } = useSessionLogs(app, id, isOpen);
  const [find, setFind] = useState('');
  const [level, setLevel] = useState('');
  const [page, setPage] = useState('');
  const [problem, setProblem] = useState<unknown>();
  const allLines = useMemo(() => consoleLines(data?.logs ?? []), [data]);
  const pages = useMemo(() => pageNames(data?.logs ?? []), [data]);
  const lines = allLines.filter(
    line =>
      line.message.toLowerCase().includes(find.toLowerCase()) &&
      (level === '' || line.level === level) &&
      (page === '' || line.pageId === Number(page)),
  );
  const count = `${lines.length} ${lines.length === 1 ? 'line' : 'lines'}`;
  return (
    <LogsState
      data={data}
      error={error}
      retry={() => void refetch()}
      isEmpty={allLines.length === 0}
      titleIfEmpty="No console messages"
    >
      <LogFilters label="Filter the console" {...{ find, setFind, page, setPage, pages, count }}>
        <Choice label="Level" value={level} choose={setLevel} any="All levels">
          <option value="error">Errors</option>
          <option value="warning">Warnings</option>
          <option value="info">Other messages</option>
        </Choice>
        <Button icon="download" onClick={() => saveLog(app, id).then(() => setProblem(undefined), setProblem)}>
          Log file
        </Button>
      </LogFilters>
      <FormError error={problem} />
      <Rows
        label="Console"
        count={lines.length}
        rowHeightPx={ROW_HEIGHT_PX}
        row={index => {
          const line = lines[index];
          return line && <Line line={line} />;
        }}
      />
    </LogsState>
  );
}

const Line = ({ line: { timeMs, pageId, level, message, sourcePosition: place } }: { readonly line: ConsoleLine }) => {
  const time = new Date(timeMs).toISOString();
  return (
    <div className="grid grid-cols-[60px_minmax(0,1fr)] gap-x-3 px-4 py-1.5 font-mono text-xs leading-4 md:grid-cols-[60px_44px_minmax(0,1fr)_auto]">
      <time dateTime={time} title={`${fullTime(time)}\n${utcTime(time)}`} className="text-faint">
        {clockTime(time)}
      </time>
      <span className="hidden text-faint md:block">{pageId < 0 ? '' : `page ${pageId}`}</span>
      <span className={`break-words whitespace-pre-wrap ${LEVEL_CLASSES[level]}`}>
        {level === 'info' ? '' : <span className="sr-only">{level}: </span>}
        {message}
      </span>
      <span className="hidden max-w-44 truncate text-faint md:block">{place}</span>
    </div>
  );
};
