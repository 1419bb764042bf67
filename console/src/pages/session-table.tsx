// A virtual table of sessions. If the table is narrow, each row has two lines.
import { Link } from '@tanstack/react-router';
import { useWindowVirtualizer } from '@tanstack/react-virtual';
import {
  type CSSProperties,
  type ReactNode,
  type RefObject,
  useEffect,
  useLayoutEffect,
  useRef,
  useState,
} from 'react';
import type { Session } from '../../../contract/sessions.ts';
import { CopyButton } from '../ui/copy-button.tsx';
import { endReasonWords } from '../ui/end-reasons.ts';
import { SessionPicture } from '../ui/session-picture.tsx';
import { isOpen, Status } from '../ui/status.tsx';
import { Ago, ElapsedTime } from '../ui/time.tsx';
import { metadataPairs } from './metadata-pairs.ts';
import { ALL_COLUMNS, COLUMNS, type Column, tracksOf, useHiddenColumns } from './session-columns.ts';

/** The minimum width of a wide table, in pixels. The container queries for the columns use the same value. */
const WIDE_PX_MIN = 620;
const WIDE_ROW_HEIGHT_PX = 56;
const NARROW_ROW_HEIGHT_PX = 68;
const OVERSCAN_ROWS = 12;
/** Older sessions are fetched when no more than this number of rows follow the last row that is drawn. */
const PREFETCH_ROWS = 60;

const GRID = '@min-[620px]:grid @min-[620px]:grid-cols-(--tracks) @min-[620px]:gap-x-4 @min-[620px]:items-center';

export interface Selection {
  readonly ids: ReadonlySet<string>;
  readonly change: (ids: readonly string[], isSelected: boolean) => void;
}

/** Returns whether the list is wide, and where it begins on the page. */
function useListLayout(list: RefObject<HTMLElement | null>): { readonly isWide: boolean; readonly top: number } {
  const [listLayout, setLayout] = useState({ isWide: true, top: 0 });
  useLayoutEffect(() => {
    const element = list.current;
    if (!element) return;
    const measure = (): void => {
      const { width, top } = element.getBoundingClientRect();
      setLayout({ isWide: width >= WIDE_PX_MIN, top: top + scrollY });
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, [list]);
  return listLayout;
}

export function SessionTable({
  app,
  sessions,
  selection,
  onNearEnd,
}: {
  readonly app: string;
  readonly sessions: readonly Session[];
  readonly selection: Selection;
  /** Called while the last rows are nearly in view, so that older sessions can be fetched before they are needed. */
  readonly onNearEnd: () => void;
}) {
  const list = useRef<HTMLUListElement>(null);
  const { isWide, top } = useListLayout(list);
  const hiddenColumns: ReadonlySet<Column> = useHiddenColumns();
  const columns = ALL_COLUMNS.filter(column => !hiddenColumns.has(column));
  const tracksStyle: CSSProperties = { ['--tracks' as string]: tracksOf(columns) }; // custom properties are not in the type
  const rows = useWindowVirtualizer({
    count: sessions.length,
    estimateSize: () => (isWide ? WIDE_ROW_HEIGHT_PX : NARROW_ROW_HEIGHT_PX),
    overscan: OVERSCAN_ROWS,
    scrollMargin: top,
    // The layout is part of the key, because row heights are kept by key and differ between the layouts.
    getItemKey: index => `${sessions[index]?.id ?? index} ${isWide}`,
  });
  const lastRenderedIndex = rows.getVirtualItems().at(-1)?.index ?? 0;
  useEffect(() => {
    if (lastRenderedIndex >= sessions.length - PREFETCH_ROWS) onNearEnd();
  });
  return (
    <>
      <div
        style={tracksStyle}
        className={`hidden h-9 border-b border-line px-4 text-xs font-medium text-faint ${GRID}`}
      >
        <SelectAll sessions={sessions} selection={selection} />
        {columns.map(column => (
          <span key={column} aria-hidden="true">
            {COLUMNS[column].name}
          </span>
        ))}
      </div>
      <ul ref={list} aria-label="Sessions" className="relative" style={{ height: rows.getTotalSize() }}>
        {rows.getVirtualItems().map(({ index, key, start, size }) => {
          const session = sessions[index];
          return (
            session && (
              <li
                key={key}
                aria-setsize={sessions.length}
                aria-posinset={index + 1}
                className={`absolute inset-x-0 grid grid-cols-[auto_minmax(0,1fr)_auto] content-center items-center gap-x-3 gap-y-1 border-b border-line px-4 last:border-b-0 hover:bg-sunk ${GRID}`}
                style={{
                  ...tracksStyle,
                  height: size,
                  transform: `translateY(${start - rows.options.scrollMargin}px)`,
                }}
              >
                <Row app={app} session={session} columns={columns} selection={selection} />
              </li>
            )
          );
        })}
      </ul>
    </>
  );
}

const Row = ({
  app,
  session,
  columns,
  selection,
}: {
  readonly app: string;
  readonly session: Session;
  readonly columns: readonly Column[];
  readonly selection: Selection;
}) => (
  <>
    <span className="row-span-2 flex items-center gap-3 @min-[620px]:row-span-1">
      <span className="hidden w-4 @min-[620px]:block">
        {isOpen(session) && (
          <input
            type="checkbox"
            aria-label={`Select the session ${session.id}`}
            checked={selection.ids.has(session.id)}
            onChange={event => selection.change([session.id], event.target.checked)}
            className="relative z-10 block size-4 accent-accent"
          />
        )}
      </span>
      <SessionPicture app={app} session={session} />
    </span>
    {columns.map(column => {
      const Cell = CELLS[column];
      return <Cell key={column} app={app} session={session} />;
    })}
  </>
);

interface CellProps {
  readonly app: string;
  readonly session: Session;
}

const CELLS: Readonly<Record<Column, (props: CellProps) => ReactNode>> = {
  status: ({ session }) => <Status status={session.status} />,
  page: Identity,
  endReason: ({ session }) => (
    <span className="hidden text-sm leading-tight text-soft @min-[620px]:line-clamp-2">
      {session.endReason ? endReasonWords(session.endReason) : ''}
    </span>
  ),
  created: ({ session }) => (
    <span className="text-right text-sm text-soft @min-[620px]:text-left">
      <Ago time={session.createdAt} />
    </span>
  ),
  duration: ({ session }) => (
    <span className="order-4 text-right text-sm text-soft @min-[620px]:order-none @min-[620px]:text-left">
      <ElapsedTime from={session.createdAt} to={session.endedAt} />
    </span>
  ),
};

/**
 * Shows the title of the session's last page, the site if the page has no title, or the id if there was no page. What
 * is below it distinguishes the session from others.
 */
function Identity({ app, session }: CellProps) {
  const { id, lastPage } = session;
  const site = lastPage && siteOf(lastPage.url);
  const title = lastPage?.title || site;
  return (
    <span className="order-3 min-w-0 @min-[620px]:order-none">
      <Link
        to="/a/$app/sessions/$id"
        params={{ app, id }}
        title={lastPage ? `${lastPage.title}\n${lastPage.url}`.trim() : id}
        className={`block truncate after:absolute after:inset-0 hover:text-accent ${title ? 'text-sm font-medium' : 'font-mono text-xs'}`}
      >
        {title ?? <ShortId id={id} />}
        <span className="sr-only"> {id}</span>
      </Link>
      <span className="hidden items-center gap-1.5 overflow-hidden text-xs text-soft @min-[620px]:flex">
        {title && (
          <span className="hidden shrink-0 font-mono text-faint @min-[900px]:inline">
            <ShortId id={id} />
          </span>
        )}
        <CopyButton text={id} label={`Copy the id ${id}`} className="relative -my-1.5 -ml-1" />
        {site && site !== title && <span className="max-w-full shrink-0 truncate">{site}</span>}
        <Metadata session={session} />
      </span>
    </span>
  );
}

const siteOf = (url: string): string => URL.parse(url)?.host ?? url;

function SelectAll({ sessions, selection }: { readonly sessions: readonly Session[]; readonly selection: Selection }) {
  const openIds = sessions.filter(isOpen).map(({ id }) => id);
  const selectedCount = openIds.filter(id => selection.ids.has(id)).length;
  return (
    <span>
      {openIds.length > 0 && (
        <input
          type="checkbox"
          aria-label={`Select the ${openIds.length} running sessions in the list`}
          checked={selectedCount === openIds.length}
          ref={box => {
            if (box) box.indeterminate = selectedCount > 0 && selectedCount < openIds.length;
          }}
          onChange={event => selection.change(openIds, event.target.checked)}
          className="block size-4 accent-accent"
        />
      )}
    </span>
  );
}

/** A short form of the id for display. Ids begin with the time, so ids from the same minute differ only at the end. */
const ShortId = ({ id }: { readonly id: string }) => (
  <span aria-hidden="true">{`${id.slice(0, 8)}\u2026${id.slice(-6)}`}</span>
);

const Metadata = ({ session }: { readonly session: Session }) =>
  metadataPairs(session.userMetadata).map(([name, value]) => (
    <span key={name} className="max-w-full shrink-0 truncate text-xs text-soft" title={`${name}=${value}`}>
      {name}
      <span className="text-faint">=</span>
      <span className="text-ink">{value}</span>
    </span>
  ));
