// Calls the published operation once, as an agent would: with a key for this call only, which is revoked afterwards.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import type { ConfiguredOperation } from '../../../contract/configured-operations.ts';
import type { Invocation, InvokeOperation } from '../../../contract/invocations.ts';
import { call } from '../api/call.ts';
import { CONSOLE_KEY_NAME } from '../api/credentials.ts';
import { invocationQuery } from '../api/queries.ts';
import { randomId } from '../api/random-id.ts';
import { lineNumberOf, type PlacedProblem, parseJson } from '../json/places.ts';
import { Button } from '../ui/button.tsx';
import { CodeBlock } from '../ui/code-block.tsx';
import { CheckField } from '../ui/form.tsx';
import { JsonField } from '../ui/json-field.tsx';
import { Panel } from '../ui/page.tsx';
import { FormError } from '../ui/states.tsx';
import { InvocationState } from './invocation-words.tsx';
import { formatJson } from './operation-draft.ts';
import { isCallable } from './operation-words.tsx';

const KEY_LIFE_MS = 600_000;
const SHOWN_CHARACTERS_MAX = 4_000;

interface Props {
  readonly app: string;
  readonly operation: ConfiguredOperation;
  readonly mayWrite: boolean;
}

export const TryOperation = ({ app, operation, mayWrite }: Props) => (
  <Panel title="Try it">
    {!mayWrite ? (
      <Note>This requires the developer role, because it is a real call.</Note>
    ) : !isCallable(operation) ? (
      <Note>
        {operation.kind === 'managed'
          ? 'This operation is switched off.'
          : 'Publish the operation first: only a published revision can be called. Agents also need a grant for the operation. A grant for * is sufficient if the operation is read-only.'}
      </Note>
    ) : (
      <TrialForm app={app} operation={operation} />
    )}
  </Panel>
);

const Note = ({ children }: { readonly children: string }) => <p className="p-4 text-sm text-soft">{children}</p>;

function TrialForm({ app, operation }: Omit<Props, 'mayWrite'>) {
  const { id, effect, publishedRevision } = operation;
  const client = useQueryClient();
  const [text, setText] = useState(() => formatJson(inputFor(operation)));
  const [problems, setProblems] = useState<readonly PlacedProblem[]>([]);
  const [isSure, setIsSure] = useState(false);
  const work = useMutation({
    mutationFn: (input: InvokeOperation['input']) => callOnce(app, id, input),
    onSettled: () => client.invalidateQueries({ queryKey: ['invocations', app] }),
  });
  const run = (): void => {
    const json = parseJson(text);
    if (!('places' in json)) {
      const message = `Line ${lineNumberOf(text, json.offset)} is not JSON: ${json.message}.`;
      return setProblems([{ message, offset: json.offset }]);
    }
    setProblems([]);
    work.mutate(Object(json.value));
  };
  return (
    <div className="grid gap-3 p-4">
      <JsonField
        label="Input to try"
        rows={6}
        value={text}
        onChange={next => {
          setText(next);
          setProblems([]);
        }}
        problems={problems}
      />
      <p className="text-xs text-soft">
        This is a real call{publishedRevision !== undefined && ` of revision ${publishedRevision}`}: it has its effect,
        costs as much as every call, and is listed under Invocations with a key named {CONSOLE_KEY_NAME}.
      </p>
      {effect === 'irreversible' && (
        <CheckField
          label="Call it even though it cannot be undone"
          checked={isSure}
          onChange={event => setIsSure(event.target.checked)}
        />
      )}
      <div>
        <Button
          look="primary"
          icon="play"
          busy={work.isPending}
          disabled={effect === 'irreversible' && !isSure}
          onClick={run}
        >
          {work.isPending ? 'Calling' : 'Call it'}
        </Button>
      </div>
      <div role="status" className="grid min-w-0 gap-3 empty:hidden">
        {work.data && !work.isPending && <Outcome app={app} initial={work.data} />}
      </div>
      <FormError error={work.error} />
    </div>
  );
}

/** Shows the response to the call. If the call is still running, shows the current state of the invocation. */
function Outcome({ app, initial: initialInvocation }: { readonly app: string; readonly initial: Invocation }) {
  const { data = initialInvocation } = useQuery({
    ...invocationQuery(app, initialInvocation.id),
    enabled: initialInvocation.status === 'running',
  });
  const invocation = initialInvocation.status === 'running' ? data : initialInvocation;
  const { status, error, output, id } = invocation;
  const outputText = output === undefined ? '' : formatJson(output);
  return (
    <>
      <p className="flex flex-wrap items-center justify-between gap-2">
        <InvocationState status={status} />
        <Link
          to="/a/$app/invocations/$id"
          params={{ app, id }}
          className="text-sm text-accent underline underline-offset-2"
        >
          Show the invocation
        </Link>
      </p>
      {error && (
        <p className="text-sm break-words">
          <code className="font-mono text-xs">{error.code}</code>: {error.message}
        </p>
      )}
      {output !== undefined && (
        <CodeBlock
          code={
            outputText.length > SHOWN_CHARACTERS_MAX
              ? `${outputText.slice(0, SHOWN_CHARACTERS_MAX)}\n… truncated; copy the output to get the rest`
              : outputText
          }
          copyText={outputText}
          label="the output"
        />
      )}
    </>
  );
}

async function callOnce(app: string, operationId: string, input: InvokeOperation['input']): Promise<Invocation> {
  const { id, key } = await call('createAgentKey', {
    params: { appId: app },
    body: {
      name: CONSOLE_KEY_NAME,
      scopes: ['operations:invoke'],
      grants: [{ operationId, maxCallsPerDay: 1 }],
      expiresAt: new Date(Date.now() + KEY_LIFE_MS).toISOString(),
    },
  });
  try {
    return await call('invokeOperation', {
      params: { appId: app, operationId },
      headers: { authorization: `Bearer ${key}`, 'idempotency-key': randomId() },
      body: { input },
    });
  } finally {
    // A failed revocation is ignored, because the key expires anyway, and the error must not hide the outcome of the
    // call.
    await call('revokeAgentKey', { params: { appId: app, keyId: id } }).catch(() => undefined);
  }
}

/**
 * Returns the first example of the operation. If there is none, returns an input with the members that the schema
 * requires.
 */
function inputFor({ examples: [example], inputSchema }: ConfiguredOperation): unknown {
  if (example) return example.input;
  const { required = [], properties = {} } = Object(inputSchema);
  const names: readonly string[] = Array.isArray(required) ? required : [];
  if (names.length === 0 && 'url' in Object(properties)) return { url: 'https://example.com' };
  return Object.fromEntries(names.map(name => [name, '']));
}
