// Shows the content to approve and asks for the decision, on the page of an Action and in the inbox. What is shown is
// built from the content that the digest covers. The message of the agent is shown separately, as plain text.
import { useMutation } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import type { ApplicationAction } from '../../../contract/actions.ts';
import { call } from '../api/call.ts';
import { askPasskey, supportsPasskeys } from '../api/passkeys.ts';
import { creditWords } from '../pages/invocation-words.tsx';
import { Button } from '../ui/button.tsx';
import { Icon } from '../ui/icon.tsx';
import { FormError } from '../ui/states.tsx';
import { fullTime } from '../ui/time.tsx';

/** `heading`: the heading level that fits the outline of the page. */
export const AgentMessage = ({
  children,
  heading: Heading,
}: {
  readonly children: ReactNode;
  readonly heading: 'h2' | 'h4';
}) => (
  <section className="rounded-lg border border-dashed border-line-strong p-4">
    <Heading className="mb-1 text-sm font-semibold">The agent says</Heading>
    <p className="text-sm break-words whitespace-pre-line text-soft">{children}</p>
  </section>
);

export function Approval({ action, heading }: { readonly action: ApplicationAction; readonly heading: 'h2' | 'h4' }) {
  const { asksFor, operationTitle, effect, reason, expiresAt, action: content } = action;
  const maxCost = content?.bounds.maxCost ?? 0;
  return (
    <>
      {effect === 'irreversible' && (
        <p className="flex gap-2 rounded-md bg-warn-soft px-3 py-2 text-sm">
          <Icon name="warning" size={16} />
          This cannot be undone.
        </p>
      )}
      <Facts label="What is approved" isPlain={heading === 'h4'}>
        {asksFor?.fields.map(({ label, value }) => (
          <Fact key={`${label} ${value}`} name={label}>
            {value}
          </Fact>
        ))}
        {asksFor?.summary !== operationTitle && <Fact name="Operation">{operationTitle}</Fact>}
        {maxCost > 0 && <Fact name="Maximum cost">{creditWords(maxCost)}</Fact>}
        <Fact name="How often">Once, until {fullTime(expiresAt)}</Fact>
      </Facts>
      {reason !== undefined && <AgentMessage heading={heading}>{reason}</AgentMessage>}
      {content && (
        <details className="text-sm">
          <summary className="cursor-pointer text-soft">Everything that is approved</summary>
          <pre className="mt-2 max-h-80 overflow-auto rounded-md bg-sunk p-3 font-mono text-xs break-all whitespace-pre-wrap">
            {escapeInvisible(JSON.stringify(content, undefined, 2))}
          </pre>
          <p className="mt-2 font-mono text-xs break-all text-soft">{action.digest}</p>
        </details>
      )}
    </>
  );
}

/** `onDecided` is called with the Action after the decision. */
export function DecisionButtons({
  action,
  onDecided,
}: {
  readonly action: ApplicationAction;
  readonly onDecided: (updated: ApplicationAction) => void;
}) {
  const decision = useDecision(action, onDecided);
  return (
    <>
      <FormError error={decision.error} />
      <div className="flex flex-wrap justify-end gap-2">
        <Button look="danger" busy={decision.isBusy} onClick={decision.refuse}>
          Refuse
        </Button>
        <Button look="primary" icon="keys" busy={decision.isBusy} onClick={decision.approve}>
          Approve
        </Button>
      </div>
      {decision.error !== null && supportsPasskeys() && (
        <Button look="quiet" busy={decision.isBusy} onClick={decision.approveWithoutPasskey}>
          Approve without signing with a passkey
        </Button>
      )}
    </>
  );
}

/** An approval is signed by a passkey over the digest, if the person has a passkey that works in this browser. */
function useDecision(
  { jobId, digest, application }: ApplicationAction,
  onDecided: (updated: ApplicationAction) => void,
) {
  const params = { appId: application.id, jobId };
  const approve = useMutation({
    mutationFn: async ({ withPasskey }: { readonly withPasskey: boolean }) => {
      const { publicKey } = withPasskey && supportsPasskeys() ? await call('challengeAction', { params }) : {};
      const proof = publicKey && (await askPasskey({ ticket: '', publicKey }));
      return call('decideAction', { params, body: { decision: 'approve', digest, ...(proof ? { proof } : {}) } });
    },
    onSuccess: onDecided,
  });
  const refuse = useMutation({
    mutationFn: () => call('decideAction', { params, body: { decision: 'refuse', digest } }),
    onSuccess: onDecided,
  });
  return {
    error: approve.error ?? refuse.error,
    isBusy: approve.isPending || refuse.isPending,
    approve: () => approve.mutate({ withPasskey: true }),
    approveWithoutPasskey: () => approve.mutate({ withPasskey: false }),
    refuse: () => refuse.mutate(),
  };
}

/** `isPlain`: without a border, for use inside a box that has a border. */
export const Facts = ({
  label,
  isPlain = false,
  children,
}: {
  readonly label: string;
  readonly isPlain?: boolean;
  readonly children: ReactNode;
}) => (
  <section
    // A label would make every item of a list a landmark with the same name.
    aria-label={isPlain ? undefined : label}
    className={isPlain ? '' : 'rounded-lg border border-line bg-raised p-4'}
  >
    <dl aria-label={label} className="grid grid-cols-[104px_minmax(0,1fr)] gap-x-3 gap-y-2 text-sm">
      {children}
    </dl>
  </section>
);

export const Fact = ({ name, children }: { readonly name: string; readonly children: ReactNode }) => (
  <>
    <dt className="break-words text-soft">{name}</dt>
    <dd className="min-w-0 break-words">{children}</dd>
  </>
);

/** Characters that reorder or hide text are shown as escapes. Ordinary line breaks are kept. */
const escapeInvisible = (text: string): string =>
  text.replace(/[\p{Cf}\p{Co}\u2028\u2029]/gu, one => `\\u{${(one.codePointAt(0) ?? 0).toString(16)}}`);
