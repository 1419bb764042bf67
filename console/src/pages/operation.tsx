// One operation: its form, its differences from the published revision, and a form to call it.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import type { ConfiguredOperation } from '../../../contract/configured-operations.ts';
import { call } from '../api/call.ts';
import { operationQuery } from '../api/queries.ts';
import { isAtLeast, useRole } from '../api/use-role.ts';
import { Button } from '../ui/button.tsx';
import { CodeBlock } from '../ui/code-block.tsx';
import { ConfirmDialog } from '../ui/confirm.tsx';
import { Facts, Page, Panel } from '../ui/page.tsx';
import { FormError, LoadError, LoadingRows } from '../ui/states.tsx';
import { Ago } from '../ui/time.tsx';
import { BuiltInOperation } from './built-in-operation.tsx';
import { BackToOperations } from './new-operation.tsx';
import { OperationDifferences } from './operation-differences.tsx';
import { formatJson } from './operation-draft.ts';
import { OperationEditor } from './operation-editor.tsx';
import { EFFECT_WORDS, hasDraft, KIND_WORDS, OperationState } from './operation-words.tsx';
import { TryOperation } from './try-operation.tsx';

const LINK = 'text-accent underline underline-offset-2';

export function OperationPage({ app, id }: { readonly app: string; readonly id: string }) {
  const { data, error, refetch } = useQuery(operationQuery(app, id));
  const role = useRole(app);
  const mayWrite = isAtLeast(role, 'developer');
  return (
    <Page
      title={id}
      above={<BackToOperations app={app} />}
      mark={data && <OperationState operation={data} />}
      about={data && `${data.title}. ${KIND_WORDS[data.kind]}.`}
      actions={
        data &&
        mayWrite &&
        data.kind !== 'managed' && <Actions app={app} operation={data} mayDelete={isAtLeast(role, 'admin')} />
      }
    >
      {data ? (
        <OperationDetails app={app} operation={data} mayWrite={mayWrite} mayRelax={isAtLeast(role, 'admin')} />
      ) : (
        <Panel>
          {error ? (
            <LoadError error={error} retry={() => void refetch()} />
          ) : (
            <LoadingRows contentLabel="the operation" />
          )}
        </Panel>
      )}
    </Page>
  );
}

interface OperationDetailsProps {
  readonly app: string;
  readonly operation: ConfiguredOperation;
  readonly mayWrite: boolean;
  readonly mayRelax: boolean;
}

function OperationDetails({ app, operation, mayWrite, mayRelax }: OperationDetailsProps) {
  const { id, kind, effect, description, publishedRevision, revision, updatedAt, inputSchema, outputSchema } =
    operation;
  const isBuiltIn = kind === 'managed';
  return (
    <div className="grid gap-5 @min-[940px]:grid-cols-[minmax(0,1fr)_380px] @min-[940px]:items-start">
      <div className="grid min-w-0 gap-5">
        {isBuiltIn ? (
          <>
            <BuiltInOperation key={revision} {...{ app, operation, mayWrite, mayRelax }} />
            <Schema name="input" schema={inputSchema} />
            {outputSchema && <Schema name="output" schema={outputSchema} />}
          </>
        ) : (
          <OperationEditor key={id} {...{ app, operation, mayWrite }} onOperationSaved={() => {}} />
        )}
      </div>
      <div className="grid min-w-0 gap-5">
        <Panel title="Now">
          <Facts
            facts={[
              ...(isBuiltIn
                ? ([
                    ['Description', description],
                    ['Effect', EFFECT_WORDS[effect]],
                  ] as const)
                : ([
                    ['Agents call', publishedRevision === undefined ? 'nothing yet' : `revision ${publishedRevision}`],
                    ['Newest', `revision ${revision}`],
                  ] as const)),
              ...(updatedAt ? [['Changed', <Ago key="ago" time={updatedAt} />] as const] : []),
              [
                'Calls',
                <Link key="calls" to="/a/$app/invocations" params={{ app }} search={{ operation: id }} className={LINK}>
                  Show its invocations
                </Link>,
              ],
              [
                'Grants',
                <Link key="keys" to="/a/$app/keys" params={{ app }} className={LINK}>
                  Let an agent key call it
                </Link>,
              ],
            ]}
          />
        </Panel>
        {publishedRevision !== undefined && publishedRevision !== revision && (
          <OperationDifferences app={app} operation={operation} publishedRevision={publishedRevision} />
        )}
        <TryOperation key={`try ${publishedRevision}`} {...{ app, operation, mayWrite }} />
      </div>
    </div>
  );
}

const Schema = ({ name, schema }: { readonly name: string; readonly schema: object }) => (
  <details className="min-w-0">
    <summary className="mb-2 w-fit rounded text-sm font-medium">Schema of the {name}</summary>
    <CodeBlock code={formatJson(schema)} label={`the schema of the ${name}`} />
  </details>
);

function Actions({
  app,
  operation,
  mayDelete,
}: {
  readonly app: string;
  readonly operation: ConfiguredOperation;
  readonly mayDelete: boolean;
}) {
  const { id, status, revision } = operation;
  const [openDialog, setOpenDialog] = useState<'withdraw' | 'delete' | undefined>();
  const client = useQueryClient();
  const navigate = useNavigate();
  const params = { appId: app, id };
  const refresh = () => client.invalidateQueries({ queryKey: ['operations', app] });
  const publish = useMutation({ mutationFn: () => call('publishOperation', { params }), onSettled: refresh });
  const canPublish = hasDraft(operation) || status === 'withdrawn';
  return (
    <>
      {canPublish && (
        <Button look="primary" busy={publish.isPending} onClick={() => publish.mutate()}>
          Publish revision {revision}
        </Button>
      )}
      {status === 'published' && <Button onClick={() => setOpenDialog('withdraw')}>Withdraw</Button>}
      {status !== 'published' && mayDelete && (
        <Button look="danger" onClick={() => setOpenDialog('delete')}>
          Delete
        </Button>
      )}
      <FormError error={publish.error} />
      {openDialog === 'withdraw' && (
        <ConfirmDialog
          title={`Withdraw ${id}?`}
          action="Withdraw"
          close={() => setOpenDialog(undefined)}
          onConfirm={async () => {
            await call('withdrawOperation', { params });
            await refresh();
          }}
        >
          From now on, agents cannot call it. Calls in progress are not stopped. It can be published again.
        </ConfirmDialog>
      )}
      {openDialog === 'delete' && (
        <ConfirmDialog
          title={`Delete ${id}?`}
          action="Delete"
          close={() => setOpenDialog(undefined)}
          onConfirm={async () => {
            await call('deleteOperation', { params, headers: { 'if-match': `"${revision}"` } });
            await navigate({ to: '/a/$app/operations', params: { app } });
            await refresh();
          }}
        >
          All of its revisions are deleted. Invocations and receipts are kept. This cannot be undone.
        </ConfirmDialog>
      )}
    </>
  );
}
