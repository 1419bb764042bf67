// The layout of all pages: navigation at the side, or behind a button on small screens. If nobody is signed in, it
// shows the sign-in page.
import { Dialog } from '@base-ui/react/dialog';
import { Link, Outlet, useParams } from '@tanstack/react-router';
import { useState, useSyncExternalStore } from 'react';
import { onSignInChange, signInState } from '../api/credentials.ts';
import { totalWaitingCount, useInbox, useLiveInbox } from '../api/live-inbox.ts';
import { SignInForm } from '../people/sign-in-form.tsx';
import { StepUpDialog } from '../people/step-up-dialog.tsx';
import { CenteredPage } from '../people/surface.tsx';
import { IconButton } from '../ui/button.tsx';
import { Icon, Mark } from '../ui/icon.tsx';
import { CommandPalette, PaletteButton } from './command-palette.tsx';
import { InboxNotice } from './inbox-notice.tsx';
import { Navigation } from './navigation.tsx';
import { recentApplication, rememberApplication } from './recent-application.ts';
import { SwitchSignIn } from './switch-sign-in.tsx';
import { WaitingMark } from './waiting-mark.tsx';

export function Shell() {
  const signInStatus = useSyncExternalStore(onSignInChange, signInState);
  if (signInStatus === 'unknown') return null;
  if (signInStatus === 'signed_out')
    return (
      <CenteredPage title="Sign in to Berth">
        <SignInForm />
      </CenteredPage>
    );
  return (
    <>
      <Frame />
      <SwitchSignIn />
      <StepUpDialog />
    </>
  );
}

function Frame() {
  const params = useParams({ strict: false });
  const app = params.app ?? recentApplication();
  const [isPaletteOpen, setIsPaletteOpen] = useState(false);
  if (params.app) rememberApplication(params.app);
  useLiveInbox();
  return (
    <div className="min-h-dvh md:grid md:grid-cols-[232px_minmax(0,1fr)]">
      <a
        href="#main"
        className="sr-only z-50 rounded-md bg-raised px-3 py-2 focus:not-sr-only focus:!fixed focus:top-2 focus:left-2"
      >
        Skip to content
      </a>
      <header className="sticky top-0 z-30 flex h-13 items-center justify-between border-b border-line bg-paper px-4 md:hidden">
        <Brand />
        <span className="flex">
          <InboxButton />
          <IconButton label="Go to" icon="search" onClick={() => setIsPaletteOpen(true)} />
          <Menu app={app} />
        </span>
      </header>
      <nav
        aria-label="Main"
        className="sticky top-0 hidden h-dvh flex-col gap-5 overflow-y-auto border-r border-line px-4 py-5 md:flex"
      >
        <Brand />
        <PaletteButton onOpen={() => setIsPaletteOpen(true)} />
        <div className="min-h-0 flex-1">
          <Navigation app={app} />
        </div>
      </nav>
      <CommandPalette app={app} open={isPaletteOpen} setOpen={setIsPaletteOpen} />
      <InboxNotice />
      <main id="main" tabIndex={-1} className="min-w-0 outline-none">
        <Outlet />
      </main>
    </div>
  );
}

const Brand = () => (
  <Link to="/" className="flex items-center gap-2.5 text-lg font-semibold tracking-tight md:px-1">
    <Mark />
    Berth
  </Link>
);

/** Shown on small screens, where the navigation is behind a button, and only while something is waiting. */
function InboxButton() {
  const count = totalWaitingCount(useInbox());
  return count === 0 ? null : (
    <Link to="/inbox" className="flex h-9 items-center gap-1.5 rounded-md px-2 text-soft hover:bg-sunk hover:text-ink">
      <Icon name="inbox" />
      <span className="sr-only">Inbox</span>
      <WaitingMark count={count} />
    </Link>
  );
}

function Menu({ app }: { readonly app: string | undefined }) {
  const [open, setOpen] = useState(false);
  return (
    <Dialog.Root open={open} onOpenChange={setOpen}>
      <Dialog.Trigger render={<IconButton label="Menu" icon="menu" className="-mr-2" />} />
      <Dialog.Portal>
        <Dialog.Backdrop className="fixed inset-0 z-40 bg-code/40" />
        <Dialog.Popup className="fixed inset-y-0 right-0 z-50 flex w-[min(300px,86vw)] flex-col gap-4 overflow-y-auto border-l border-line bg-paper p-4">
          <div className="flex items-center justify-between">
            <Dialog.Title className="text-lg font-semibold">Menu</Dialog.Title>
            <Dialog.Close render={<IconButton label="Close" icon="close" className="-mr-2" />} />
          </div>
          <nav aria-label="Main" className="min-h-0 flex-1">
            <Navigation app={app} onNavigate={() => setOpen(false)} />
          </nav>
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  );
}
