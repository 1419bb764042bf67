// Redirects to the overview of the most recently used application. If there is none, redirects to the overview of the
// first application.
import { useQuery } from '@tanstack/react-query';
import { Navigate } from '@tanstack/react-router';
import { applicationsQuery } from '../api/queries.ts';
import { forgetApplication, recentApplication } from '../shell/recent-application.ts';
import { LoadError, LoadingRows } from '../ui/states.tsx';

export function HomePage() {
  const { data, error, refetch } = useQuery(applicationsQuery);
  if (error) return <LoadError error={error} retry={() => void refetch()} />;
  if (!data) return <LoadingRows contentLabel="applications" />;
  const recentId = recentApplication();
  const app = data.data.find(({ id }) => id === recentId) ?? data.data[0];
  if (app) return <Navigate to="/a/$app" params={{ app: app.id }} replace />;
  forgetApplication();
  return <Navigate to="/applications" replace />;
}
