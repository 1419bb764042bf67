// Redirects to the inbox of the last used application. If nothing is waiting there, redirects to the inbox of an
// application in which something is waiting. E-mails link to this page.
import { useQuery } from '@tanstack/react-query';
import { Navigate } from '@tanstack/react-router';
import { isPerson } from '../api/credentials.ts';
import { useInbox, waitingCountOf } from '../api/live-inbox.ts';
import { applicationsQuery } from '../api/queries.ts';
import { recentApplication } from '../shell/recent-application.ts';
import { LoadError, LoadingRows } from '../ui/states.tsx';

export function InboxHomePage() {
  const { data, error, refetch } = useQuery(applicationsQuery);
  const inbox = useInbox();
  if (error) return <LoadError error={error} retry={() => void refetch()} />;
  if (!data || (isPerson() && !inbox)) return <LoadingRows contentLabel="the inbox" />;
  const recentApp = data.data.find(({ id }) => id === recentApplication()) ?? data.data[0];
  const waitingApp = inbox?.applications[0]?.applicationId;
  const app = waitingApp !== undefined && waitingCountOf(inbox, recentApp?.id) === 0 ? waitingApp : recentApp?.id;
  return app === undefined ? (
    <Navigate to="/applications" replace />
  ) : (
    <Navigate to="/a/$app/inbox" params={{ app }} replace />
  );
}
