// A virtual table of sessions. On small screens, each row has two lines.
import { Link } from '@tanstack/react-router';
import { useWindowVirtualizer } from '@tanstack/react-virtual';
import { useLayoutEffect, useRef, useState, useSyncExternalStore } from 'react';
import type { Session } from '../../../contract/sessions.ts';
import { SessionPicture } from '../ui/session-picture.tsx';
import { endReasonWords, Status } from '../ui/status.tsx';
import { Ago, Lasting } from '../ui/time.tsx';
import { metadataPairs } from './metadata-pairs.ts';

const WIDE = matchMedia('(min-width: 768px)');
const ROW_WIDE_PX = 52;
const ROW_NARROW_PX = 68;
const OVERSCAN = 12;

const useIsWide = (): boolean =>
  useSyncExternalStore(
    listener => {
      WIDE.addEventListener('change', listener);
      return () => WIDE.removeEventListener('change', listener);
    },
    () => WIDE.matches,
  );

/** Column widths. If there is not enough space, metadata is hidden first, then end reasons. */
const COLUMNS =
  'md:grid md:grid-cols-[64px_96px_minmax(0,1fr)_88px_72px] lg:grid-cols-[64px_96px_minmax(0,1.6fr)_88px_72px_minmax(0,1fr)] xl:grid-cols-[64px_96px_minmax(0,1.5fr)_minmax(0,1fr)_88px_72px_minmax(0,0.9fr)] md:gap-x-4 md:items-center';

const HEADINGS = [
  ['', ''],
  ['Status', ''],
  ['Session', ''],
  ['Metadata', 'max-xl:hidden'],
  ['Created', ''],
  ['Duration', ''],
  ['End reason', 'max-lg:hidden'],
] as const;

export function SessionTable({ app, sessions }: { readonly app: string; readonly sessions: readonly Session[] }) {
  const isWide = useIsWide();
  const list = useRef<HTMLUListElement>(null);
  const [top, setTop] = useState(0);
  useLayoutEffect(() => {
    if (list.current) setTop(list.current.getBoundingClientRect().top + scrollY);
  }, []);
  const rows = useWindowVirtualizer({
    count: sessions.length,
    estimateSize: () => (isWide ? ROW_WIDE_PX : ROW_NARROW_PX),
    overscan: OVERSCAN,
    scrollMargin: top,
    getItemKey: index => sessions[index]?.id ?? index,
  });
  return (
    <>
      <div
        aria-hidden="true"
        className={`h-9 border-b border-line px-4 text-xs font-medium text-faint max-md:hidden ${COLUMNS}`}
      >
        {HEADINGS.map(([name, shown]) => (
          <span key={name} className={shown}>
            {name}
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
                className={`absolute inset-x-0 grid grid-cols-[auto_minmax(0,1fr)_auto] content-center items-center gap-x-3 gap-y-1 border-b border-line px-4 last:border-b-0 hover:bg-sunk ${COLUMNS}`}
                style={{ height: size, transform: `translateY(${start - rows.options.scrollMargin}px)` }}
              >
                <Row app={app} session={session} />
              </li>
            )
          );
        })}
      </ul>
    </>
  );
}

const Row = ({ app, session }: { readonly app: string; readonly session: Session }) => (
  <>
    <span className="row-span-2 md:row-span-1">
      <SessionPicture app={app} session={session} />
    </span>
    <Status status={session.status} />
    <Link
      to="/a/$app/sessions/$id"
      params={{ app, id: session.id }}
      className="order-3 block min-w-0 truncate font-mono text-xs after:absolute after:inset-0 hover:text-accent md:order-none"
    >
      {session.id}
    </Link>
    <span className="hidden min-w-0 gap-1.5 overflow-hidden xl:flex">
      <Metadata session={session} />
    </span>
    <span className="text-right text-sm text-soft md:text-left">
      <Ago time={session.createdAt} />
    </span>
    <span className="order-4 text-right text-sm text-soft md:order-none md:text-left">
      <Lasting from={session.createdAt} to={session.endedAt} />
    </span>
    <span className="hidden truncate text-sm text-soft lg:block">
      {session.endReason ? endReasonWords(session.endReason) : ''}
    </span>
  </>
);

const Metadata = ({ session }: { readonly session: Session }) =>
  metadataPairs(session.userMetadata).map(([name, value]) => (
    <span key={name} className="truncate rounded bg-sunk px-1.5 py-0.5 text-xs text-soft">
      {name}
      <span className="text-faint">=</span>
      <span className="text-ink">{value}</span>
    </span>
  ));
