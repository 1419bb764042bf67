// One invocation: the operation and its input, the outcome, the cost and the evidence.
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { Invocation } from '../../../contract/invocations.ts';
import { invocationQuery, keysQuery } from '../api/queries.ts';
import { isAtLeast, useRole } from '../api/use-role.ts';
import { verificationQuery } from '../api/verify-invocation.ts';
import { CodeBlock } from '../ui/code-block.tsx';
import { CopyButton } from '../ui/copy-button.tsx';
import { Icon } from '../ui/icon.tsx';
import { Facts, Page, Panel } from '../ui/page.tsx';
import { LoadError, LoadingRows } from '../ui/states.tsx';
import { bytesWords, TimeText } from '../ui/time.tsx';
import { filesIn } from './invocation-files.ts';
import { InvocationSteps } from './invocation-steps.tsx';
import { creditWords, InvocationState } from './invocation-words.tsx';
import { Receipt } from './receipt.tsx';

/** The maximum number of characters shown. The rest is cut off on the page, but the copy button copies everything. */
const SHOWN_CHARACTERS_MAX = 6_000;
const LINK = 'text-accent underline underline-offset-2';

export function InvocationPage({ app, id }: { readonly app: string; readonly id: string }) {
  const { data, error, refetch } = useQuery(invocationQuery(app, id));
  return (
    <Page
      title="Invocation"
      above={
        <Link
          to="/a/$app/invocations"
          params={{ app }}
          className="mb-2 -ml-1 inline-flex h-8 items-center gap-1 rounded pr-2 text-sm text-soft hover:text-ink"
        >
          <Icon name="back" size={16} />
          Invocations
        </Link>
      }
      mark={data && <InvocationState status={data.status} />}
      about={
        <span className="inline-flex max-w-full items-center gap-1 align-top">
          <code className="truncate font-mono text-xs">{id}</code>
          <CopyButton text={id} label="Copy the invocation's id" />
        </span>
      }
    >
      {data ? (
        <InvocationDetails app={app} invocation={data} />
      ) : (
        <Panel>
          {error ? (
            <LoadError error={error} retry={() => void refetch()} />
          ) : (
            <LoadingRows contentLabel="the invocation" />
          )}
        </Panel>
      )}
    </Page>
  );
}

const InvocationDetails = ({ app, invocation }: { readonly app: string; readonly invocation: Invocation }) => (
  <div className="grid gap-5 @min-[1000px]:grid-cols-[minmax(0,1fr)_320px] @min-[1000px]:items-start">
    <div className="grid min-w-0 gap-5 @min-[620px]:grid-cols-2 @min-[1000px]:col-start-2 @min-[1000px]:grid-cols-1">
      <Panel title="Timeline">
        <InvocationSteps invocation={invocation} />
      </Panel>
      <Call app={app} invocation={invocation} />
      <Cost invocation={invocation} />
      <Evidence app={app} invocation={invocation} />
    </div>
    <div className="grid min-w-0 gap-5 @min-[1000px]:col-start-1 @min-[1000px]:row-start-1">
      <Receipt app={app} invocation={invocation} />
      <ValuePanel app={app} name="Input" invocation={invocation} value={invocation.input} untilField="inputUntil" />
      <ValuePanel app={app} name="Output" invocation={invocation} value={invocation.output} untilField="outputUntil" />
    </div>
  </div>
);

function Call({ app, invocation }: { readonly app: string; readonly invocation: Invocation }) {
  const { data: keys } = useQuery(keysQuery(app));
  const { operationId, operationRevision, effect, caller, metadata = {} } = invocation;
  const keyName = keys?.find(({ id }) => id === caller.keyId)?.name ?? caller.keyId;
  return (
    <Panel title="Call">
      <Facts
        facts={[
          [
            'Operation',
            <Link
              key="operation"
              to="/a/$app/invocations"
              params={{ app }}
              search={{ operation: operationId }}
              title="Show all calls of this operation"
              className={LINK}
            >
              {operationId}
            </Link>,
          ],
          ['Revision', operationRevision],
          ['Effect', effect],
          [
            'Agent key',
            <Link
              key="key"
              to="/a/$app/invocations"
              params={{ app }}
              search={{ key: caller.keyId }}
              title="Show all calls of this key"
              className={LINK}
            >
              {keyName}
            </Link>,
          ],
          ...Object.entries(metadata).map(([name, value]) => [name, value] as const),
        ]}
      />
    </Panel>
  );
}

const Cost = ({ invocation: { cost, status, sessionId } }: { readonly invocation: Invocation }) => {
  const { reserved, captured, meters } = cost;
  const isOpen = status === 'running' || status === 'ambiguous';
  return (
    <Panel title="Cost">
      <Facts
        facts={[
          [isOpen ? 'Held' : 'Charged', creditWords(isOpen ? reserved : captured)],
          ...(isOpen || reserved === captured ? [] : [['Was held', creditWords(reserved)] as const]),
          ...(sessionId === undefined
            ? []
            : [
                ['Browser', `${meters.browserSeconds} s`] as const,
                ['Network', bytesWords(meters.egressBytes)] as const,
              ]),
        ]}
      />
    </Panel>
  );
};

function Evidence({ app, invocation }: { readonly app: string; readonly invocation: Invocation }) {
  const { sessionId } = invocation;
  // Only the receipt states whether the session was recorded.
  const isRecorded = useQuery(verificationQuery(app, invocation)).data?.claims.berth.session?.recorded ?? true;
  const files = filesIn(invocation.output);
  const linkProps = { to: '/a/$app/sessions/$id', className: LINK } as const;
  const params = { app, id: sessionId ?? '' };
  const facts: ReadonlyArray<readonly [string, ReactNode]> = [
    ...(sessionId === undefined
      ? []
      : ([
          [
            'Session',
            <Link key="session" {...linkProps} params={params}>
              {sessionId.slice(0, 8)}
            </Link>,
          ],
          [
            'Recording',
            isRecorded ? (
              <Link key="replay" {...linkProps} params={params} search={{ tab: 'replay' }}>
                Replay
              </Link>
            ) : (
              'not recorded'
            ),
          ],
          [
            'Logs',
            <Link key="logs" {...linkProps} params={params} search={{ tab: 'network' }}>
              Network requests
            </Link>,
          ],
        ] as const)),
    ...files.map(
      ({ url, mimeType, size }, index) =>
        [
          files.length === 1 ? 'File' : `File ${index + 1}`,
          <a key={url} href={url} download className={LINK}>
            {mimeType}, {bytesWords(size)}
          </a>,
        ] as const,
    ),
  ];
  return (
    <Panel title="Evidence">
      {facts.length > 0 ? (
        <Facts facts={facts} />
      ) : (
        <p className="px-4 py-3 text-sm text-soft">
          This call used no browser session and left no file. The receipt is its proof.
        </p>
      )}
    </Panel>
  );
}

function ValuePanel({
  app,
  name,
  invocation,
  value,
  untilField,
}: {
  readonly app: string;
  readonly name: 'Input' | 'Output';
  readonly invocation: Invocation;
  readonly value: object | undefined;
  readonly untilField: 'inputUntil' | 'outputUntil';
}) {
  const mayRead = isAtLeast(useRole(app), 'developer');
  const { inputDigest, outputDigest, retention, status, outputInvalid } = invocation;
  const digest = name === 'Input' ? inputDigest : outputDigest;
  const keptUntil = retention?.[untilField];
  const text = value && JSON.stringify(value, null, 2);
  return (
    <Panel title={name}>
      <div className="grid gap-2.5 px-4 py-3 text-sm">
        {name === 'Output' && outputInvalid && (
          <p className="text-warn">
            The output does not match the output schema of the operation. The effect has happened.
          </p>
        )}
        {text === undefined ? (
          <p className="text-soft">{absenceReason(name, status, mayRead, keptUntil !== undefined)}</p>
        ) : (
          <CodeBlock code={shorten(text)} copyText={text} label={name.toLowerCase()} />
        )}
        {keptUntil && (
          <p className="text-xs text-soft">
            Kept until <TimeText time={keptUntil} />
          </p>
        )}
        {digest && <p className="font-mono text-xs break-all text-soft">{digest}</p>}
      </div>
    </Panel>
  );
}

function absenceReason(name: string, status: Invocation['status'], mayRead: boolean, isKept: boolean): string {
  if (!mayRead && isKept)
    return `The ${name.toLowerCase()} is kept, but is shown only to developers, admins and owners.`;
  if (status === 'running') return `The ${name.toLowerCase()} is shown when the call has ended, if it is kept.`;
  if (name === 'Output' && status !== 'succeeded') return 'There is no output.';
  return `The ${name.toLowerCase()} is not kept. The receipt contains its digest, so anyone who has the ${name.toLowerCase()} can prove that it belongs to this call.`;
}

const shorten = (text: string): string =>
  text.length <= SHOWN_CHARACTERS_MAX
    ? text
    : `${text.slice(0, SHOWN_CHARACTERS_MAX)}\n… ${text.length - SHOWN_CHARACTERS_MAX} more characters, included when you copy`;
