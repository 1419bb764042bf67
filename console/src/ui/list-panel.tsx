// A panel with a list. If there are no items, it shows whether they are loading, could not be loaded, or do not exist.
import type { ReactNode } from 'react';
import { Panel } from './page.tsx';
import { LoadError, LoadingRows } from './states.tsx';

export function ListPanel<Item>({
  contentLabel,
  items,
  error,
  retry,
  empty,
  children,
}: {
  /** What is being loaded, for screen readers. */
  readonly contentLabel: string;
  /** Undefined while loading. */
  readonly items: readonly Item[] | undefined;
  readonly error: unknown;
  readonly retry: () => unknown;
  readonly empty: ReactNode;
  readonly children: (item: Item) => ReactNode;
}) {
  return (
    <Panel>
      {error && !items ? (
        <LoadError error={error} retry={() => void retry()} />
      ) : !items ? (
        <LoadingRows contentLabel={contentLabel} rows={3} />
      ) : items.length === 0 ? (
        empty
      ) : (
        <ul className="divide-y divide-line">{items.map(children)}</ul>
      )}
    </Panel>
  );
}
