// /approve/{jobId}: a person reads what an agent would do, and approves or refuses it.
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useSyncExternalStore } from 'react';
import type { ApplicationAction } from '../../../contract/actions.ts';
import { call } from '../api/call.ts';
import { isPerson, onSignInChange, signInState } from '../api/credentials.ts';
import { LoadError, LoadingRows } from '../ui/states.tsx';
import { fullTime } from '../ui/time.tsx';
import { Approval as ActionContent, DecisionButtons, Fact, Facts } from './approval.tsx';
import { SignInForm } from './sign-in-form.tsx';
import { StepUpDialog } from './step-up-dialog.tsx';
import { CenteredPage } from './surface.tsx';

const POLL_INTERVAL_MS = 5_000;
const ENDED_STATUSES = ['succeeded', 'failed', 'ambiguous', 'refused', 'expired', 'cancelled'];

export const approvalJobIdIn = (path: string): string | undefined => /^\/approve\/([0-9a-f-]{36})$/.exec(path)?.[1];

export function ApprovePage({ jobId }: { readonly jobId: string }) {
  const signInStatus = useSyncExternalStore(onSignInChange, signInState);
  if (signInStatus === 'unknown') return null;
  if (signInStatus === 'signed_out' || !isPerson())
    return (
      <CenteredPage
        title="Sign in to decide"
        about="An agent is asking for approval. Nothing happens without a decision."
      >
        <SignInForm />
      </CenteredPage>
    );
  return (
    <>
      <Approval jobId={jobId} />
      <StepUpDialog />
    </>
  );
}

function Approval({ jobId }: { readonly jobId: string }) {
  const { data, error, refetch } = useQuery({
    queryKey: ['approval', jobId],
    queryFn: () => call('readApproval', { params: { jobId } }),
    refetchInterval: ({ state }) =>
      state.data && ENDED_STATUSES.includes(state.data.status) ? false : POLL_INTERVAL_MS,
    retry: false,
  });
  if (data) return data.status === 'awaiting_approval' ? <Question action={data} /> : <Outcome action={data} />;
  return (
    <CenteredPage title="Approval">
      {error ? (
        <LoadError error={error} retry={() => void refetch()} />
      ) : (
        <LoadingRows contentLabel="the request" rows={4} />
      )}
    </CenteredPage>
  );
}

function Question({ action }: { readonly action: ApplicationAction }) {
  const { application, asksFor, operationTitle } = action;
  const client = useQueryClient();
  return (
    <CenteredPage
      title={asksFor?.summary ?? operationTitle}
      about={<>An agent of {application.name} asks to do this.</>}
    >
      <div className="grid gap-5">
        <ActionContent action={action} heading="h2" />
        <p className="text-sm text-soft">
          Asked by the agent key {action.agent.name}, {fullTime(action.createdAt)}. If you did not expect this, refuse
          it.
        </p>
        <DecisionButtons
          action={action}
          onDecided={updatedAction => client.setQueryData(['approval', action.jobId], updatedAction)}
        />
      </div>
    </CenteredPage>
  );
}

const OUTCOME_TEXTS: Readonly<
  Record<Exclude<ApplicationAction['status'], 'awaiting_approval'>, readonly [string, string]>
> = {
  approved: ['Approved', 'The agent may do this once. You can close this page.'],
  executing: ['Approved', 'It is being executed now.'],
  succeeded: ['Done', 'You approved it, and it was done once.'],
  failed: ['Failed', 'It was approved, but its execution failed.'],
  ambiguous: ['Outcome unknown', 'It was approved and started, but its outcome is unknown.'],
  refused: ['Refused', 'Nothing was done. You can close this page.'],
  expired: ['Expired', 'It was not done in time, and can no longer be done.'],
  cancelled: ['Cancelled', 'It was cancelled, and can no longer be done.'],
};

function Outcome({ action }: { readonly action: ApplicationAction }) {
  const { status, asksFor, operationTitle, decision, executeOnApproval, heldBack } = action;
  if (status === 'awaiting_approval') return null;
  const [title, about] = OUTCOME_TEXTS[status];
  return (
    <CenteredPage
      title={title}
      about={
        status === 'approved' && executeOnApproval
          ? 'It will be executed in a moment. No further approval is needed.'
          : about
      }
    >
      <Facts label="What was decided">
        <Fact name="Asked">{asksFor?.summary ?? operationTitle}</Fact>
        {decision && <Fact name="Decided">{fullTime(decision.at)}</Fact>}
        {decision?.method === 'passkey' && <Fact name="Signed">by a passkey, over the digest</Fact>}
        {heldBack !== undefined && <Fact name="Postponed">{heldBack}. It will be tried again.</Fact>}
        <Fact name="Digest">
          <span className="font-mono text-xs break-all">{action.digest}</span>
        </Fact>
      </Facts>
    </CenteredPage>
  );
}
