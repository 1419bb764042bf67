// /approve/{jobId}: a person reads what an agent would do, and approves or refuses it. What is shown comes from the content that the
// digest is of; what the agent says stands apart, as plain text.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useSyncExternalStore } from 'react';
import type { ApplicationAction } from '../../../contract/actions.ts';
import { call } from '../api/call.ts';
import { isPerson, onSignedIn, signInState } from '../api/credentials.ts';
import { askPasskey, hasPasskeys } from '../api/passkeys.ts';
import { creditWords } from '../pages/invocation-words.tsx';
import { Button } from '../ui/button.tsx';
import { Icon } from '../ui/icon.tsx';
import { Failed, FormError, Loading } from '../ui/states.tsx';
import { fullTime } from '../ui/time.tsx';
import { SignInForm } from './sign-in-form.tsx';
import { StepUpDialog } from './step-up-dialog.tsx';
import { Surface } from './surface.tsx';

const LOOK_MS = 5_000;
const ENDED = ['succeeded', 'failed', 'ambiguous', 'refused', 'expired', 'cancelled'];

export const approvalIn = (path: string): string | undefined => /^\/approve\/([0-9a-f-]{36})$/.exec(path)?.[1];

export function ApprovePage({ jobId }: { readonly jobId: string }) {
  const state = useSyncExternalStore(onSignedIn, signInState);
  if (state === 'unknown') return null;
  if (state === 'signed_out' || !isPerson())
    return (
      <Surface title="Sign in to decide" about="An agent asks for an approval. Nothing happens without a decision.">
        <SignInForm />
      </Surface>
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
    refetchInterval: ({ state }) => (state.data && ENDED.includes(state.data.status) ? false : LOOK_MS),
    retry: false,
  });
  if (data) return data.status === 'awaiting_approval' ? <Question action={data} /> : <Outcome action={data} />;
  return (
    <Surface title="Approval">
      {error ? <Failed error={error} retry={() => void refetch()} /> : <Loading what="what is asked for" rows={4} />}
    </Surface>
  );
}

function Question({ action }: { readonly action: ApplicationAction }) {
  const { application, asksFor, operationTitle, effect, reason, expiresAt, action: content } = action;
  const decision = useDecision(action);
  const maxCost = content?.bounds.maxCost ?? 0;
  return (
    <Surface title={asksFor?.summary ?? operationTitle} about={<>An agent of {application.name} asks to do this.</>}>
      <div className="grid gap-5">
        {effect === 'irreversible' && (
          <p className="flex gap-2 rounded-md bg-warn-soft px-3 py-2 text-sm">
            <Icon name="warning" size={16} />
            This cannot be undone.
          </p>
        )}
        <Facts label="What is approved">
          {asksFor?.fields.map(({ label, value }) => (
            <Fact key={`${label} ${value}`} name={label}>
              {value}
            </Fact>
          ))}
          {asksFor?.summary !== operationTitle && <Fact name="Operation">{operationTitle}</Fact>}
          {maxCost > 0 && <Fact name="Cost at most">{creditWords(maxCost)}</Fact>}
          <Fact name="How often">Once, until {fullTime(expiresAt)}</Fact>
        </Facts>
        {reason !== undefined && (
          <section className="rounded-lg border border-dashed border-line-strong p-4">
            <h2 className="mb-1 text-sm font-semibold">The agent says</h2>
            <p className="text-sm break-words text-soft">{reason}</p>
          </section>
        )}
        <details className="text-sm">
          <summary className="cursor-pointer text-soft">Everything that is approved</summary>
          <pre className="mt-2 max-h-80 overflow-auto rounded-md bg-sunk p-3 font-mono text-xs break-all whitespace-pre-wrap">
            {visible(JSON.stringify(content, undefined, 2))}
          </pre>
          <p className="mt-2 font-mono text-xs break-all text-soft">{action.digest}</p>
        </details>
        <p className="text-sm text-soft">
          Asked by the agent key {action.agent.name}, {fullTime(action.createdAt)}. If you do not expect this, refuse
          it.
        </p>
        <FormError error={decision.error} />
        <div className="flex flex-wrap justify-end gap-2">
          <Button look="danger" busy={decision.isBusy} onClick={decision.refuse}>
            Refuse
          </Button>
          <Button look="primary" icon="keys" busy={decision.isBusy} onClick={decision.approve}>
            Approve
          </Button>
        </div>
        {decision.error !== null && hasPasskeys() && (
          <Button look="quiet" busy={decision.isBusy} onClick={decision.approveWithout}>
            Approve without signing by passkey
          </Button>
        )}
      </div>
    </Surface>
  );
}

/** An approval is signed by a passkey over the digest, if the person has one that works here. */
function useDecision(action: ApplicationAction) {
  const { jobId, digest, application } = action;
  const client = useQueryClient();
  const params = { appId: application.id, jobId };
  const decided = (now: ApplicationAction) => client.setQueryData(['approval', jobId], now);
  const approve = useMutation({
    mutationFn: async ({ signs }: { readonly signs: boolean }) => {
      const { publicKey } = signs && hasPasskeys() ? await call('challengeAction', { params }) : {};
      const proof = publicKey && (await askPasskey({ ticket: '', publicKey }));
      return call('decideAction', { params, body: { decision: 'approve', digest, ...(proof ? { proof } : {}) } });
    },
    onSuccess: decided,
  });
  const refuse = useMutation({
    mutationFn: () => call('decideAction', { params, body: { decision: 'refuse', digest } }),
    onSuccess: decided,
  });
  return {
    error: approve.error ?? refuse.error,
    isBusy: approve.isPending || refuse.isPending,
    approve: () => approve.mutate({ signs: true }),
    approveWithout: () => approve.mutate({ signs: false }),
    refuse: () => refuse.mutate(),
  };
}

const OUTCOMES: Readonly<Record<Exclude<ApplicationAction['status'], 'awaiting_approval'>, readonly [string, string]>> =
  {
    approved: ['Approved', 'The agent may do this once. You can close this page.'],
    executing: ['Approved', 'It is being done now.'],
    succeeded: ['Done', 'You approved it, and it was done once.'],
    failed: ['Failed', 'It was approved, and its execution has failed.'],
    ambiguous: ['Outcome unknown', 'It was approved and started. Whether it happened is not known.'],
    refused: ['Refused', 'Nothing was done. You can close this page.'],
    expired: ['Expired', 'It was not done in time, and cannot be done any more.'],
    cancelled: ['Cancelled', 'It was cancelled, and cannot be done any more.'],
  };

function Outcome({ action }: { readonly action: ApplicationAction }) {
  const { status, asksFor, operationTitle, decision, executeOnApproval, heldBack } = action;
  if (status === 'awaiting_approval') return null;
  const [title, about] = OUTCOMES[status];
  return (
    <Surface
      title={title}
      about={status === 'approved' && executeOnApproval ? 'It is done in a moment, without further questions.' : about}
    >
      <Facts label="What was decided">
        <Fact name="Asked">{asksFor?.summary ?? operationTitle}</Fact>
        {decision && <Fact name="Decided">{fullTime(decision.at)}</Fact>}
        {decision?.method === 'passkey' && <Fact name="Signed">by a passkey, over the digest</Fact>}
        {heldBack !== undefined && <Fact name="Put off">{heldBack}. It is tried again.</Fact>}
        <Fact name="Digest">
          <span className="font-mono text-xs break-all">{action.digest}</span>
        </Fact>
      </Facts>
    </Surface>
  );
}

const Facts = ({ label, children }: { readonly label: string; readonly children: ReactNode }) => (
  <section aria-label={label} className="rounded-lg border border-line bg-raised p-4">
    <dl className="grid grid-cols-[104px_minmax(0,1fr)] gap-x-3 gap-y-2 text-sm">{children}</dl>
  </section>
);

const Fact = ({ name, children }: { readonly name: string; readonly children: ReactNode }) => (
  <>
    <dt className="break-words text-soft">{name}</dt>
    <dd className="min-w-0 break-words">{children}</dd>
  </>
);

/** Characters that reorder or hide text are shown as escapes. Line breaks of the layout stay. */
const visible = (text: string): string =>
  text.replace(/[\p{Cf}\p{Co}\u2028\u2029]/gu, one => `\\u{${(one.codePointAt(0) ?? 0).toString(16)}}`);
