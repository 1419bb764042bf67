// Placeholders for content that is loading, is empty or could not be loaded. Errors show the API's message.
import type { ReactNode } from 'react';
import { ApiError } from '../api/api-error.ts';
import { Button } from './button.tsx';
import { Icon, type IconName } from './icon.tsx';

/** Gray rows while content is loading, announced once to screen readers. */
export const LoadingRows = ({
  rows = 6,
  contentLabel: contentName,
}: {
  readonly rows?: number;
  readonly contentLabel: string;
}) => (
  <div role="status" className="grid gap-px">
    <span className="sr-only">Loading {contentName}</span>
    {Array.from({ length: rows }, (_, index) => String(index)).map(row => (
      <div key={row} aria-hidden="true" className="flex h-11 items-center gap-4 border-b border-line px-4">
        <div className="h-2.5 w-20 motion-safe:animate-pulse rounded bg-line" />
        <div className="h-2.5 w-48 max-w-2/5 motion-safe:animate-pulse rounded bg-line" />
        <div className="ml-auto h-2.5 w-16 motion-safe:animate-pulse rounded bg-line" />
      </div>
    ))}
  </div>
);

export const EmptyState = ({
  icon,
  title,
  children,
  action,
}: {
  readonly icon: IconName;
  readonly title: string;
  readonly children?: ReactNode;
  readonly action?: ReactNode;
}) => (
  <div className="flex flex-col items-center px-6 py-16 text-center">
    <div className="mb-3 text-faint">
      <Icon name={icon} size={28} />
    </div>
    <h2 className="text-base font-semibold">{title}</h2>
    {children && <div className="mt-1 max-w-md text-soft">{children}</div>}
    {action && <div className="mt-5">{action}</div>}
  </div>
);

export function LoadError({ error, retry }: { readonly error: unknown; readonly retry?: () => void }) {
  const { message, requestId } = errorDetails(error);
  return (
    <div role="alert" className="m-4 flex gap-3 rounded-lg border border-bad/40 bg-bad-soft px-4 py-3">
      <span className="mt-0.5 text-bad">
        <Icon name="warning" />
      </span>
      <div className="min-w-0">
        <p className="font-medium break-words">{message}</p>
        {requestId && <p className="mt-1 font-mono text-xs break-all text-soft">Request {requestId}</p>}
        {retry && (
          <Button className="mt-3" onClick={retry}>
            Try again
          </Button>
        )}
      </div>
    </div>
  );
}

/** The message of an error and the id of its request, for forms and dialogs. Shows nothing without an error. */
export function FormError({ error }: { readonly error: unknown }) {
  if (!error) return null;
  const { message, requestId } = errorDetails(error);
  return (
    <div role="alert" className="rounded-md bg-bad-soft px-3 py-2 text-sm">
      <p className="break-words">{message}</p>
      {requestId && <p className="mt-0.5 font-mono text-xs break-all text-soft">Request {requestId}</p>}
    </div>
  );
}

function errorDetails(error: unknown): { message: string; requestId?: string } {
  if (error instanceof ApiError)
    return { message: error.message, ...(error.requestId ? { requestId: error.requestId } : {}) };
  return { message: error instanceof Error ? error.message : 'The console failed unexpectedly. Reload the page.' };
}
