// /handoffs/{id}: a person reads what an agent asks for, takes control of its browser, works in the live view, and
// reports the outcome. The agent's message is shown as plain text, set apart from Berth's own text.
import { useCallback, useEffect, useState, useSyncExternalStore } from 'react';
import type { ClaimedHandoff, Handoff, HandoffOutcome } from '../../../contract/handoffs.ts';
import { onSignInChange, signInState } from '../api/credentials.ts';
import { tabStore } from '../api/storage.ts';
import { Button, buttonClass } from '../ui/button.tsx';
import { FormError } from '../ui/states.tsx';
import {
  claimHandoff,
  completeHandoff,
  giveBack,
  HandoffError,
  type HandoffLink,
  readHandoff,
  renewLease,
  takeHandoffLink,
} from './handoff-calls.ts';
import { agentText, HANDOFF_REASON_WORDS, HANDOFF_RECORD_WORDS, withoutBidi } from './handoff-words.ts';
import { SignInForm } from './sign-in-form.tsx';
import { StepUpDialog } from './step-up-dialog.tsx';
import { CenteredPage } from './surface.tsx';

const RENEWALS_PER_LEASE = 3;
const isFramed = parent !== window;
/** The delay before a failed renewal is tried again. */
const RENEW_RETRY_DELAY_MS = 2_000;
const NO_RESPONSE_TEXT = 'Berth is not responding. You keep control if it responds again soon.';
const LEASE_END_CODES: ReadonlySet<string> = new Set(['stale_fence', 'invalid_credentials', 'not_found']);

export function HandoffPage() {
  const [handoffLink] = useState(takeHandoffLink);
  const signInStatus = useSyncExternalStore(onSignInChange, signInState);
  // Protects against clickjacking: a site that frames this page could make members click what they do not see. Framing
  // is allowed for a person who has a link, because the site that frames the page gave the person that link.
  if (handoffLink.secret === undefined && isFramed)
    return (
      <CenteredPage title="Open this page in its own window" about="Members cannot sign in inside another site." />
    );
  if (handoffLink.secret === undefined && signInStatus === 'unknown') return null;
  if (handoffLink.secret === undefined && signInStatus === 'signed_out') return <SignIn />;
  return (
    <>
      <HandoffFlow link={handoffLink} />
      <StepUpDialog />
    </>
  );
}

/** A passkey is bound to a host name, so on a local machine people sign in at localhost. */
function SignIn() {
  const isLoopbackAddress = /^(?:127\.\d+\.\d+\.\d+|\[::1\])$/.test(location.hostname);
  useEffect(() => {
    if (isLoopbackAddress) location.replace(`http://localhost:${location.port}${location.pathname}${location.search}`);
  }, [isLoopbackAddress]);
  if (isLoopbackAddress) return null;
  return (
    <CenteredPage title="Sign in to help an agent" about="An agent asks for a person to take control of its browser.">
      <SignInForm />
    </CenteredPage>
  );
}

function HandoffFlow({ link: handoffLink }: { readonly link: HandoffLink }) {
  const [lease, setLease] = useState<ClaimedHandoff | undefined>(() => readStoredLease(handoffLink));
  const [endNotice, setEndNotice] = useState<{ readonly title: string; readonly about: string } | undefined>();
  const storeLease = (newLease: ClaimedHandoff | undefined): void => {
    if (newLease) tabStore.setItem(leaseKey(handoffLink), JSON.stringify(newLease));
    else tabStore.removeItem(leaseKey(handoffLink));
    setLease(newLease);
  };
  if (endNotice)
    return (
      <CenteredPage title={endNotice.title} about={endNotice.about}>
        {handoffLink.secret === undefined && (
          <a href={`/console/a/${handoffLink.app}/inbox`} className={buttonClass()}>
            Back to the inbox
          </a>
        )}
      </CenteredPage>
    );
  if (!lease) return <HandoffRequest handoffLink={handoffLink} onLeaseClaimed={storeLease} />;
  return (
    <ActiveHandoff
      handoffLink={handoffLink}
      lease={lease}
      onLeaseLost={() => storeLease(undefined)}
      onHandoffOver={(title, description, status) => {
        // Reports the end of the hand-off to the page that frames this one. Only origins that the application has
        // registered may frame it.
        if (isFramed) parent.postMessage({ type: 'berth-handoff', handoffId: handoffLink.id, status }, '*');
        storeLease(undefined);
        setEndNotice({ title, about: description });
      }}
    />
  );
}

const leaseKey = ({ id }: HandoffLink): string => `handoff-lease ${id}`;

/** The lease that was stored before a reload of the page. */
function readStoredLease(handoffLink: HandoffLink): ClaimedHandoff | undefined {
  const text = tabStore.getItem(leaseKey(handoffLink));
  return text === null ? undefined : (JSON.parse(text) as ClaimedHandoff); // The stored value was written by this page.
}

// ---- before control ----------------------------------------------------------------------------------------------------

function HandoffRequest({
  handoffLink,
  onLeaseClaimed: onClaimed,
}: {
  readonly handoffLink: HandoffLink;
  readonly onLeaseClaimed: (lease: ClaimedHandoff) => void;
}) {
  const [handoff, setHandoff] = useState<Handoff | undefined>();
  const [error, setError] = useState<Error | null>(null);
  const [isBusy, setIsBusy] = useState(false);
  useEffect(() => {
    readHandoff(handoffLink).then(setHandoff, setError);
  }, [handoffLink]);
  if (!handoff && error) return <CenteredPage title="This hand-off cannot be opened" about={error.message} />;
  if (!handoff) return null;
  if (handoff.status !== 'requested')
    return <CenteredPage title="Nothing to do here" about={STATUS_TEXTS[handoff.status]} />;
  const claim = (): void => {
    setIsBusy(true);
    claimHandoff(handoffLink)
      .then(onClaimed, setError)
      .finally(() => setIsBusy(false));
  };
  return (
    <CenteredPage
      title={HANDOFF_REASON_WORDS[handoff.reason]}
      about={
        <>
          An agent of <strong>{handoff.applicationName ?? 'an application'}</strong> asks you to take control of its
          browser.
        </>
      }
    >
      <div className="grid gap-5">
        <AgentMessage text={handoff.instructions} />
        <dl className="grid grid-cols-[110px_minmax(0,1fr)] gap-x-3 gap-y-1.5 text-sm">
          <Fact name="Page">{handoff.pageOrigin ?? 'No page is open yet'}</Fact>
          {handoff.allowedOrigins && <Fact name="Only these sites">{handoff.allowedOrigins.join(', ')}</Fact>}
          <Fact name="Recording">{HANDOFF_RECORD_WORDS[handoff.record]}</Fact>
        </dl>
        <p className="text-sm text-soft">
          The browser belongs to the application. Type a secret only if you trust the application and the page above.
        </p>
        <FormError error={error} />
        <Button look="primary" busy={isBusy} onClick={claim}>
          Take control
        </Button>
      </div>
    </CenteredPage>
  );
}

const STATUS_TEXTS: Readonly<Record<Exclude<Handoff['status'], 'requested'>, string>> = {
  claimed: 'Another person has control at the moment.',
  completed: 'A person has already completed this request.',
  declined: 'A person has declined this request.',
  failed: 'A person tried, but could not complete this request.',
  cancelled: 'The request was cancelled.',
  expired: 'Nobody took control in time, and the agent is no longer waiting.',
  session_ended: 'The browser has been closed.',
};

const AgentMessage = ({ text }: { readonly text: string }) => (
  <section className="rounded-lg border border-line bg-raised p-4">
    <h2 className="mb-2 text-sm font-semibold">The agent says</h2>
    <p className="break-words whitespace-pre-line">{agentText(text)}</p>
  </section>
);

/** Focusable, so that long instructions can be scrolled with the keyboard. */
const AgentInstructions = ({ text }: { readonly text: string }) => (
  <section
    aria-label="The agent says"
    tabIndex={0}
    className="max-h-[4.5rem] overflow-y-auto text-sm break-words whitespace-pre-line"
  >
    {withoutBidi(text)}
  </section>
);

const Fact = ({ name, children }: { readonly name: string; readonly children: React.ReactNode }) => (
  <>
    <dt className="text-soft">{name}</dt>
    <dd className="min-w-0 break-words">{children}</dd>
  </>
);

// ---- in control --------------------------------------------------------------------------------------------------------

function ActiveHandoff({
  handoffLink,
  lease,
  onLeaseLost: onLost,
  onHandoffOver: onOver,
}: {
  readonly handoffLink: HandoffLink;
  readonly lease: ClaimedHandoff;
  readonly onLeaseLost: () => void;
  readonly onHandoffOver: (title: string, description: string, status: Handoff['status']) => void;
}) {
  const [error, setError] = useState<Error | null>(null);
  const [isBusy, setIsBusy] = useState(false);
  const [note, setNote] = useState('');
  const { leaseToken } = lease;
  const handleFailure = useCallback(
    (reason: Error): void => {
      // These codes mean that the lease has ended. Any other failure, such as a restart of the service, is temporary.
      if (reason instanceof HandoffError && LEASE_END_CODES.has(reason.code)) onLost();
      else setError(reason instanceof HandoffError ? reason : new Error(NO_RESPONSE_TEXT));
    },
    [onLost],
  );
  const clearError = useCallback(() => setError(null), []);
  useRenewal(handoffLink, lease, handleFailure, clearError);
  useEffect(() => {
    document.title = 'You have control · Berth';
  }, []);
  const end = (outcome: HandoffOutcome, title: string, description: string): void => {
    setIsBusy(true);
    completeHandoff(handoffLink, leaseToken, { outcome, ...(note.trim() ? { note: note.trim() } : {}) })
      .then(() => onOver(title, description, outcome), handleFailure)
      .finally(() => setIsBusy(false));
  };
  const giveBackControl = (): void => {
    setIsBusy(true);
    giveBack(handoffLink, leaseToken)
      .then(() => onOver('Given back', 'The request is waiting for another person.', 'requested'), handleFailure)
      .finally(() => setIsBusy(false));
  };
  return (
    <main className="grid h-dvh grid-rows-[auto_minmax(0,1fr)_auto]">
      <header className="border-b border-line bg-raised px-4 py-2.5">
        <h1 className="text-xs font-semibold text-soft">You have control. The agent says:</h1>
        <AgentInstructions text={lease.instructions} />
      </header>
      <iframe
        title="The browser"
        src={toOwnOrigin(lease.liveViewUrl)}
        className="size-full border-0"
        allow="clipboard-read; clipboard-write"
      />
      <footer className="grid gap-2 border-t border-line bg-raised px-4 py-3 md:grid-cols-[minmax(0,1fr)_auto] md:items-center">
        <FormError error={error} />
        <input
          aria-label="Message for the agent"
          placeholder="Message for the agent (optional)"
          maxLength={1000}
          value={note}
          onChange={event => setNote(event.target.value)}
          className="h-9 min-w-0 rounded-md border border-line-strong bg-raised px-3 text-sm md:col-start-1 md:h-8"
        />
        <div className="flex flex-wrap gap-2 md:col-start-2">
          <Button
            look="primary"
            className="flex-1"
            busy={isBusy}
            onClick={() => end('completed', 'Thank you', 'The agent has control again. You can close this page.')}
          >
            Done
          </Button>
          <Button
            busy={isBusy}
            onClick={() =>
              end('failed', 'The agent has been notified', 'The agent has control again. You can close this page.')
            }
          >
            Could not do it
          </Button>
          <Button look="quiet" busy={isBusy} onClick={giveBackControl}>
            Give it back
          </Button>
        </div>
      </footer>
    </main>
  );
}

/**
 * Returns the address on this origin: a service on loopback has several host names, and only this origin may be framed.
 * Hides the controls of the live view, because this page has its own.
 */
function toOwnOrigin(url: string): string {
  const { pathname, search } = new URL(url);
  return `${pathname}${search}&controls=false`;
}

/** Renews the lease while this page is running. A page that is suspended loses its lease. */
function useRenewal(
  handoffLink: HandoffLink,
  { leaseToken, leaseExpiresAt }: ClaimedHandoff,
  onFailed: (reason: Error) => void,
  onRenewed: () => void,
): void {
  const [renewIntervalMs] = useState(() =>
    Math.max(5_000, (Date.parse(leaseExpiresAt) - Date.now()) / RENEWALS_PER_LEASE),
  );
  useEffect(() => {
    let retryTimer: ReturnType<typeof setTimeout> | undefined;
    let isOver = false;
    const renew = (): void => {
      clearTimeout(retryTimer);
      renewLease(handoffLink, leaseToken).then(
        () => {
          if (!isOver) onRenewed();
        },
        reason => {
          if (isOver) return;
          onFailed(reason);
          clearTimeout(retryTimer);
          retryTimer = setTimeout(renew, RENEW_RETRY_DELAY_MS);
        },
      );
    };
    const timer = setInterval(renew, Math.min(renewIntervalMs, 30_000));
    const onVisible = (): void => {
      if (!document.hidden) renew();
    };
    const onMessage = ({ data, origin }: MessageEvent): void => {
      if (origin === location.origin && data === 'browserbase-disconnected') renew();
    };
    document.addEventListener('visibilitychange', onVisible);
    addEventListener('message', onMessage);
    return () => {
      isOver = true;
      clearTimeout(retryTimer);
      clearInterval(timer);
      document.removeEventListener('visibilitychange', onVisible);
      removeEventListener('message', onMessage);
    };
  }, [handoffLink, leaseToken, renewIntervalMs, onFailed, onRenewed]);
}
