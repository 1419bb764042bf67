// A virtual table of sessions. Where there is little room, each row has two lines.
import { Link } from '@tanstack/react-router';
import { useWindowVirtualizer } from '@tanstack/react-virtual';
import { type RefObject, useLayoutEffect, useRef, useState } from 'react';
import type { Session } from '../../../contract/sessions.ts';
import { CopyButton } from '../ui/copy-button.tsx';
import { endReasonWords } from '../ui/end-reasons.ts';
import { SessionPicture } from '../ui/session-picture.tsx';
import { Status } from '../ui/status.tsx';
import { Ago, Lasting } from '../ui/time.tsx';
import { metadataPairs } from './metadata-pairs.ts';

/** The same as the container query of the columns. */
const WIDE_PX = 620;
const ROW_WIDE_PX = 56;
const ROW_NARROW_PX = 68;
const OVERSCAN = 12;

const COLUMNS =
  '@min-[620px]:grid @min-[620px]:grid-cols-[64px_92px_minmax(0,1fr)_minmax(124px,0.4fr)_84px_64px] @min-[620px]:gap-x-4 @min-[620px]:items-center';

const HEADINGS = ['', 'Status', 'Session', 'End reason', 'Created', 'Duration'] as const;

/** How wide the list is, and where it begins on the page. */
function useRoom(list: RefObject<HTMLElement | null>): { readonly isWide: boolean; readonly top: number } {
  const [room, setRoom] = useState({ isWide: true, top: 0 });
  useLayoutEffect(() => {
    const element = list.current;
    if (!element) return;
    const measure = (): void => {
      const { width, top } = element.getBoundingClientRect();
      setRoom({ isWide: width >= WIDE_PX, top: top + scrollY });
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, [list]);
  return room;
}

export function SessionTable({ app, sessions }: { readonly app: string; readonly sessions: readonly Session[] }) {
  const list = useRef<HTMLUListElement>(null);
  const { isWide, top } = useRoom(list);
  const rows = useWindowVirtualizer({
    count: sessions.length,
    estimateSize: () => (isWide ? ROW_WIDE_PX : ROW_NARROW_PX),
    overscan: OVERSCAN,
    scrollMargin: top,
    // A row that gets another height gets another key, because heights are kept by key.
    getItemKey: index => `${sessions[index]?.id ?? index} ${isWide}`,
  });
  return (
    <>
      <div
        aria-hidden="true"
        className={`hidden h-9 border-b border-line px-4 text-xs font-medium text-faint ${COLUMNS}`}
      >
        {HEADINGS.map(name => (
          <span key={name}>{name}</span>
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
    <span className="row-span-2 @min-[620px]:row-span-1">
      <SessionPicture app={app} session={session} />
    </span>
    <Status status={session.status} />
    <span className="order-3 min-w-0 @min-[620px]:order-none">
      <span className="flex items-center">
        <Link
          to="/a/$app/sessions/$id"
          params={{ app, id: session.id }}
          title={session.id}
          className="min-w-0 truncate font-mono text-xs after:absolute after:inset-0 hover:text-accent"
        >
          <SessionId id={session.id} />
        </Link>
        <CopyButton text={session.id} label={`Copy the id ${session.id}`} className="relative -my-1 ml-0.5" />
      </span>
      <span className="hidden gap-1.5 overflow-hidden @min-[620px]:flex">
        <Metadata session={session} />
      </span>
    </span>
    <span className="hidden text-sm leading-tight text-soft @min-[620px]:line-clamp-2">
      {session.endReason ? endReasonWords(session.endReason) : ''}
    </span>
    <span className="text-right text-sm text-soft @min-[620px]:text-left">
      <Ago time={session.createdAt} />
    </span>
    <span className="order-4 text-right text-sm text-soft @min-[620px]:order-none @min-[620px]:text-left">
      <Lasting from={session.createdAt} to={session.endedAt} />
    </span>
  </>
);

/** Short for the eye: ids begin with the time, so the end tells those of one minute apart. */
const SessionId = ({ id }: { readonly id: string }) => (
  <>
    <span className="sr-only">{id}</span>
    <span aria-hidden="true">{`${id.slice(0, 8)}\u2026${id.slice(-6)}`}</span>
  </>
);

const Metadata = ({ session }: { readonly session: Session }) =>
  metadataPairs(session.userMetadata).map(([name, value]) => (
    <span key={name} className="max-w-full shrink-0 truncate text-xs text-soft" title={`${name}=${value}`}>
      {name}
      <span className="text-faint">=</span>
      <span className="text-ink">{value}</span>
    </span>
  ));
