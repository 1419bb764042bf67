// The receipt of an invocation, which is verified in this browser before it is shown. The claims of an invalid receipt
// are not shown as facts.
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import type { Invocation } from '../../../contract/invocations.ts';
import { CannotVerify, ReceiptInvalid } from '../../../sdk/verify-receipt-in-browser.ts';
import { saveReceipt } from '../api/save-file.ts';
import { type VerifiedReceipt, verificationQuery } from '../api/verify-invocation.ts';
import { Button } from '../ui/button.tsx';
import { CodeBlock } from '../ui/code-block.tsx';
import { Icon } from '../ui/icon.tsx';
import { Facts, Panel } from '../ui/page.tsx';
import { LoadError } from '../ui/states.tsx';
import { TimeText } from '../ui/time.tsx';
import { creditWords } from './invocation-words.tsx';

export function Receipt({ app, invocation }: { readonly app: string; readonly invocation: Invocation }) {
  const { id, receipt } = invocation;
  if (receipt === undefined)
    return (
      <Panel title="Receipt">
        <p className="px-4 py-3 text-sm text-soft">The receipt is signed when the invocation ends.</p>
      </Panel>
    );
  return (
    <Panel
      title="Receipt"
      actions={
        <Button look="quiet" icon="download" onClick={() => saveReceipt(id, receipt)}>
          Download
        </Button>
      }
    >
      <Verification app={app} invocation={invocation} />
      <details className="border-t border-line px-4 py-2 text-sm">
        <summary className="cursor-pointer py-1 text-soft hover:text-ink">Verify it without this service</summary>
        <p className="py-2 text-soft">
          Download the receipt, save <code className="font-mono text-xs">/.well-known/jwks.json</code> as{' '}
          <code className="font-mono text-xs">keys.json</code>, and run this on any machine. It needs no network:
        </p>
        <div className="grid gap-2.5 pb-2">
          <CodeBlock code={`berth receipts verify receipt-${id}.jws --jwks keys.json`} label="the command" />
          <CodeBlock code={receipt} label="the receipt" />
        </div>
      </details>
    </Panel>
  );
}

function Verification({ app, invocation }: { readonly app: string; readonly invocation: Invocation }) {
  const { data, error, isFetching, refetch } = useQuery(verificationQuery(app, invocation));
  const verifyAgainButton = (
    <Button busy={isFetching} onClick={() => void refetch()}>
      Verify again
    </Button>
  );
  if (error instanceof ReceiptInvalid)
    return (
      <Verdict look="bad" title="This receipt is not valid" action={verifyAgainButton}>
        {toSentence(error.message)} Its claims are not shown here.
      </Verdict>
    );
  if (error instanceof CannotVerify)
    return (
      <Verdict look="warn" title="Not verified" action={verifyAgainButton}>
        {toSentence(error.message)} The command below verifies it.
      </Verdict>
    );
  if (error) return <LoadError error={error} retry={() => void refetch()} />;
  if (!data)
    return (
      <p role="status" className="px-4 py-3 text-sm text-soft">
        Verifying the receipt …
      </p>
    );
  return (
    <>
      <Verdict look="good" title="Verified in this browser" action={verifyAgainButton}>
        <ul className="grid gap-0.5">
          {data.checks.map(check => (
            <li key={check}>{check}</li>
          ))}
        </ul>
      </Verdict>
      <ClaimFacts {...data} />
    </>
  );
}

const VARIANTS = {
  good: { icon: 'check', ink: 'text-good' },
  warn: { icon: 'warning', ink: 'text-warn' },
  bad: { icon: 'warning', ink: 'text-bad' },
} as const;

const Verdict = ({
  look,
  title,
  action,
  children,
}: {
  readonly look: keyof typeof VARIANTS;
  readonly title: string;
  readonly action: ReactNode;
  readonly children: ReactNode;
}) => (
  <div
    role={look === 'good' ? 'status' : 'alert'}
    className={`flex flex-wrap items-start gap-x-3 gap-y-3 px-4 py-3 ${look === 'bad' ? 'bg-bad-soft' : look === 'warn' ? 'bg-warn-soft' : ''}`}
  >
    <span className={`mt-0.5 ${VARIANTS[look].ink}`}>
      <Icon name={VARIANTS[look].icon} size={20} />
    </span>
    <div className="min-w-0 flex-1 basis-56">
      <h3 className={`font-semibold ${VARIANTS[look].ink}`}>{title}</h3>
      <div className="mt-1 text-sm break-words text-soft">{children}</div>
    </div>
    {action}
  </div>
);

const ClaimFacts = ({ claims }: Pick<VerifiedReceipt, 'claims'>) => {
  const { iss, jti, berth } = claims;
  const { operation, caller, session, upstream, cost, inputDigest, outputDigest, endedAt, attempts } = berth;
  const code = (text: string): ReactNode => <code className="font-mono text-xs break-all">{text}</code>;
  return (
    <div className="border-t border-line">
      <Facts
        facts={[
          ['Receipt', code(jti)],
          ['Issued by', iss],
          ['Operation', `${operation.id}, revision ${operation.revision}, effect ${operation.effect}`],
          ['Definition', code(operation.digest)],
          ['State', `${berth.status}${berth.error ? `, ${berth.error.code}` : ''}`],
          ['Ended', <TimeText key="ended" time={endedAt} />],
          ['Attempts', attempts],
          ['Called by', code(`${caller.kind} ${caller.id}`)],
          ['Input', code(inputDigest)],
          ['Output', outputDigest === undefined ? 'none' : code(outputDigest)],
          ...(session
            ? [['Session', code(`${session.id}, ${session.recorded ? 'recorded' : 'not recorded'}`)] as const]
            : []),
          ...(upstream
            ? [['Service', `${upstream.host ?? 'unknown'}, status ${upstream.status ?? 'none'}`] as const]
            : []),
          ['Cost', cost.captured === undefined ? 'not settled' : creditWords(cost.captured)],
        ]}
      />
    </div>
  );
};

const toSentence = (text: string): string => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}.`;
