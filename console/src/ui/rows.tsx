// A virtual list: only rows in view are rendered. The window scrolls.
import { useWindowVirtualizer } from '@tanstack/react-virtual';
import { type ReactNode, useLayoutEffect, useRef, useState } from 'react';

const OVERSCAN_ROWS = 16;

export function Rows({
  label,
  count,
  rowHeightPx,
  row,
}: {
  readonly label: string;
  readonly count: number;
  /** Estimated height of a row; rendered rows are measured. */
  readonly rowHeightPx: number;
  readonly row: (index: number) => ReactNode;
}) {
  const list = useRef<HTMLOListElement>(null);
  const [top, setTop] = useState(0);
  useLayoutEffect(() => {
    if (list.current) setTop(list.current.getBoundingClientRect().top + scrollY);
  }, []);
  const rows = useWindowVirtualizer({
    count,
    estimateSize: () => rowHeightPx,
    overscan: OVERSCAN_ROWS,
    scrollMargin: top,
  });
  return (
    <ol ref={list} aria-label={label} className="relative" style={{ height: rows.getTotalSize() }}>
      {rows.getVirtualItems().map(({ index, key, start }) => (
        <li
          key={key}
          ref={rows.measureElement}
          data-index={index}
          aria-setsize={count}
          aria-posinset={index + 1}
          className="absolute inset-x-0 top-0 border-b border-line"
          style={{ minHeight: rowHeightPx, transform: `translateY(${start - rows.options.scrollMargin}px)` }}
        >
          {row(index)}
        </li>
      ))}
    </ol>
  );
}
