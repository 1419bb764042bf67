// The live view of a session, embedded in a frame.
import { useQuery } from '@tanstack/react-query';
import { readLiveAddress } from '../api/live-address.ts';
import { LoadError, LoadingRows } from '../ui/states.tsx';

export function LiveTab({ app, id }: { readonly app: string; readonly id: string }) {
  const { data, error, refetch } = useQuery({
    queryKey: ['live', app, id],
    queryFn: ({ signal }) => readLiveAddress(app, id, signal),
    // The address is fetched once, because a new address would reload the frame.
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
    retry: false,
  });
  if (error) return <LoadError error={error} retry={() => void refetch()} />;
  if (!data) return <LoadingRows contentLabel="the live view" rows={4} />;
  return (
    <iframe
      src={data}
      title="Live view of the session"
      allow="clipboard-read; clipboard-write"
      sandbox="allow-same-origin allow-scripts allow-downloads allow-popups allow-popups-to-escape-sandbox"
      className="block h-[min(60vh,460px)] w-full md:h-[min(72vh,820px)] bg-code"
    />
  );
}
