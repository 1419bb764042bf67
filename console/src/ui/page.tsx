// The layout of pages (title, description, actions) and of the panels in them.
import { type ReactNode, useEffect } from 'react';

export function Page({
  title,
  about,
  mark,
  actions,
  above,
  children,
}: {
  readonly title: string;
  readonly about?: ReactNode;
  /** Shown beside the title. */
  readonly mark?: ReactNode;
  readonly actions?: ReactNode;
  /** Shown above the title, such as a link back. */
  readonly above?: ReactNode;
  readonly children: ReactNode;
}) {
  useEffect(() => {
    document.title = `${title} · Berth`;
  }, [title]);
  return (
    <div className="mx-auto max-w-[1320px] px-4 pt-5 pb-16 md:px-8 md:pt-7">
      {above}
      <header className="mb-5 flex flex-wrap items-start justify-between gap-x-6 gap-y-3">
        <div className="min-w-0">
          <div className="flex min-h-8 flex-wrap items-center gap-x-4 gap-y-1">
            <h1 className="text-xl leading-tight font-semibold tracking-tight">{title}</h1>
            {mark}
          </div>
          {about && <p className="mt-1 max-w-2xl text-soft">{about}</p>}
        </div>
        {actions && <div className="flex flex-wrap items-center gap-2">{actions}</div>}
      </header>
      <div className="@container">{children}</div>
    </div>
  );
}

export const Panel = ({
  title,
  actions,
  children,
  className = '',
}: {
  readonly title?: string;
  readonly actions?: ReactNode;
  readonly children: ReactNode;
  readonly className?: string;
}) => (
  <section className={`overflow-hidden rounded-lg border border-line bg-raised ${className}`}>
    {title && (
      <header className="flex min-h-11 items-center justify-between gap-3 border-b border-line px-4 py-1.5">
        <h2 className="text-sm font-semibold">{title}</h2>
        {actions}
      </header>
    )}
    {children}
  </section>
);

/** A list of names and values. */
export const Facts = ({ facts }: { readonly facts: ReadonlyArray<readonly [string, ReactNode]> }) => (
  <dl className="divide-y divide-line">
    {facts.map(([name, value]) => (
      <div key={name} className="grid grid-cols-[112px_minmax(0,1fr)] gap-3 px-4 py-2">
        <dt className="text-sm text-soft">{name}</dt>
        <dd className="min-w-0 text-sm break-words">{value}</dd>
      </div>
    ))}
  </dl>
);
