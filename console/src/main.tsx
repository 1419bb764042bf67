// Starts the console: reads a token from the address, and renders the pages.
import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { detectHumanSession, onSignInChange, signInState, takeTokenFromAddress } from './api/credentials.ts';
import { queryClient } from './api/queries.ts';
import { ApprovePage, approvalJobIdIn } from './people/approve.tsx';
import { DevicePage } from './people/device.tsx';
import { HandoffPage } from './people/handoff-page.tsx';
import { InvitationPage } from './people/invitation-page.tsx';
import { SignInPage } from './people/sign-in-page.tsx';
import { router } from './router.tsx';
import { forgetApplication } from './shell/recent-application.ts';
import { applyTheme, readStoredTheme } from './shell/theme.ts';
import './styles.css';

applyTheme(readStoredTheme());
takeTokenFromAddress();
addEventListener('hashchange', takeTokenFromAddress);
void detectHumanSession();
// Discards cached data after a sign-out, so that the next user does not see it.
onSignInChange(() => {
  if (signInState() !== 'signed_out') return;
  queryClient.clear();
  forgetApplication();
});

const root = document.getElementById('root');
if (!root) throw new Error('the page has no element for the console');
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={queryClient}>{pageFor(location.pathname)}</QueryClientProvider>
  </StrictMode>,
);

/** Selects the page for a path. Pages that people open from links outside the console do not have its layout. */
function pageFor(path: string) {
  if (path === '/signin') return <SignInPage />;
  if (path === '/device') return <DevicePage />;
  if (path.startsWith('/handoffs/')) return <HandoffPage />;
  if (path === '/console/invitation') return <InvitationPage />;
  const jobId = approvalJobIdIn(path);
  if (jobId !== undefined) return <ApprovePage jobId={jobId} />;
  return <RouterProvider router={router} />;
}
