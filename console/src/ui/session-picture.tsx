// A thumbnail of a session: the newest picture while the session is running, and the last picture after it has ended.
// The thumbnail is decorative, so it is hidden from screen readers.
import { useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import type { Session } from '../../../contract/sessions.ts';
import { pictureQuery } from '../api/queries.ts';
import { Icon } from './icon.tsx';
import { isOpen } from './status.tsx';

export function SessionPicture({ app, session }: { readonly app: string; readonly session: Session }) {
  const { data } = useQuery(pictureQuery(app, session.id, !isOpen(session)));
  const url = useObjectUrl(data ?? undefined);
  return (
    <span
      aria-hidden="true"
      className="grid aspect-video w-[72px] place-items-center text-line-strong shrink-0 overflow-hidden rounded border border-line bg-sunk md:w-16"
    >
      {url ? (
        <img src={url} alt="" className="size-full object-cover object-top" />
      ) : (
        <Icon name="sessions" size={16} />
      )}
    </span>
  );
}

export function useObjectUrl(blob: Blob | undefined): string | undefined {
  const [url, setUrl] = useState<string>();
  useEffect(() => {
    if (!blob) return setUrl(undefined);
    const objectUrl = URL.createObjectURL(blob);
    setUrl(objectUrl);
    return () => URL.revokeObjectURL(objectUrl);
  }, [blob]);
  return url;
}
