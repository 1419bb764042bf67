// Agent keys of an application: issued and shown once, rotated, revoked. Keys that consoles issue themselves, and those
// that ended, are there on demand.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import type { AgentKey, AgentKeyScope, IssuedAgentKey } from '../../../contract/agent-keys.ts';
import { call } from '../api/call.ts';
import { CONSOLE_KEY_NAME } from '../api/credentials.ts';
import { keysQuery } from '../api/queries.ts';
import { Button } from '../ui/button.tsx';
import { Confirm } from '../ui/confirm.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { CheckField, TextField } from '../ui/form.tsx';
import { Page, Panel } from '../ui/page.tsx';
import { Reveal } from '../ui/reveal.tsx';
import { Empty, Failed, FormError, Loading } from '../ui/states.tsx';
import { CredentialRow } from './credential-row.tsx';
import { ExpiryField, expiresAtOf } from './expiry.tsx';

const SCOPES = [
  ['browsers:read', 'List and read sessions'],
  ['browsers:write', 'Create, change and release sessions'],
  ['browsers:connect', 'See connect addresses and drive browsers'],
  ['browsers:files', 'Uploads, downloads and recordings'],
] as const satisfies ReadonlyArray<readonly [AgentKeyScope, string]>;

type Doing = { readonly issue: true } | { readonly rotate: AgentKey } | { readonly revoke: AgentKey };

const isAside = ({ name, status }: AgentKey): boolean => name === CONSOLE_KEY_NAME || status !== 'active';

export function KeysPage({ app }: { readonly app: string }) {
  const { data, error, refetch } = useQuery(keysQuery(app));
  const [doing, setDoing] = useState<Doing | undefined>();
  const [issued, setIssued] = useState<IssuedAgentKey | undefined>();
  const [all, setAll] = useState(false);
  const client = useQueryClient();
  const done = async (key?: IssuedAgentKey): Promise<void> => {
    setDoing(undefined);
    if (key) setIssued(key);
    await client.invalidateQueries({ queryKey: keysQuery(app).queryKey });
  };
  const keys = data?.data ?? [];
  const aside = keys.filter(isAside).length;
  const shown = all ? keys : keys.filter(key => !isAside(key));
  return (
    <Page
      title="Agent keys"
      about="What your programs use browsers with. A key is shown once; revoking it works at once."
      actions={
        <Button look="primary" icon="plus" onClick={() => setDoing({ issue: true })}>
          Issue a key
        </Button>
      }
    >
      <Panel>
        {error ? (
          <Failed error={error} retry={() => void refetch()} />
        ) : !data ? (
          <Loading what="agent keys" rows={4} />
        ) : shown.length === 0 ? (
          <Empty icon="keys" title="No keys in use">
            Issue one for each program, so that each can be revoked alone.
          </Empty>
        ) : (
          <ul className="divide-y divide-line">
            {shown.map(key => (
              <CredentialRow
                key={key.id}
                credential={key}
                {...(key.name === CONSOLE_KEY_NAME ? { note: 'of a console tab, for an hour' } : {})}
                actions={
                  key.status === 'active' && (
                    <>
                      <Button look="quiet" aria-label={`Rotate ${key.name}`} onClick={() => setDoing({ rotate: key })}>
                        Rotate
                      </Button>
                      <Button look="quiet" aria-label={`Revoke ${key.name}`} onClick={() => setDoing({ revoke: key })}>
                        Revoke
                      </Button>
                    </>
                  )
                }
              />
            ))}
          </ul>
        )}
      </Panel>
      {aside > 0 && (
        <Button look="quiet" className="mt-3" onClick={() => setAll(!all)} aria-expanded={all}>
          {all ? 'Hide ended keys and those of consoles' : `Show ${aside} ended, or of a console`}
        </Button>
      )}
      {doing && 'issue' in doing && <Issue app={app} close={() => setDoing(undefined)} done={done} />}
      {doing && 'rotate' in doing && (
        <Confirm
          title={`Rotate ${doing.rotate.name}?`}
          action="Rotate"
          close={() => setDoing(undefined)}
          act={async () => {
            const params = { appId: app, keyId: doing.rotate.id };
            await done(await call('rotateAgentKey', { params, body: {} }));
          }}
        >
          A new key with the same rights is issued and shown. The old one goes on working for an hour.
        </Confirm>
      )}
      {doing && 'revoke' in doing && (
        <Confirm
          title={`Revoke ${doing.revoke.name}?`}
          action="Revoke"
          close={() => setDoing(undefined)}
          act={async () => {
            await call('revokeAgentKey', { params: { appId: app, keyId: doing.revoke.id } });
            await done();
          }}
        >
          Programs that use it are refused from now on. Sessions that run go on. This cannot be undone.
        </Confirm>
      )}
      {issued && (
        <Reveal
          title={`Agent key ${issued.name}`}
          secret={issued.key}
          what="agent key"
          close={() => setIssued(undefined)}
        />
      )}
    </Page>
  );
}

function Issue({
  app,
  close,
  done,
}: {
  readonly app: string;
  readonly close: () => void;
  readonly done: (key: IssuedAgentKey) => Promise<void>;
}) {
  const [name, setName] = useState('');
  const [days, setDays] = useState('');
  const [scopes, setScopes] = useState<readonly AgentKeyScope[]>(SCOPES.map(([scope]) => scope));
  const issue = useMutation({
    mutationFn: () =>
      call('createAgentKey', { params: { appId: app }, body: { name, scopes: [...scopes], ...expiresAtOf(days) } }),
    onSuccess: done,
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    issue.mutate();
  };
  return (
    <Dialog open onClose={close} title="Issue an agent key">
      <form onSubmit={submit} className="grid gap-4">
        <TextField
          label="Name"
          placeholder="nightly crawl"
          value={name}
          onChange={event => setName(event.target.value)}
          maxLength={64}
          required
        />
        <fieldset className="grid gap-2.5">
          <legend className="mb-2 text-sm font-medium">It may</legend>
          {SCOPES.map(([scope, words]) => (
            <CheckField
              key={scope}
              label={words}
              checked={scopes.includes(scope)}
              onChange={event =>
                setScopes(event.target.checked ? [...scopes, scope] : scopes.filter(one => one !== scope))
              }
            />
          ))}
        </fieldset>
        <ExpiryField value={days} onChange={setDays} never />
        <FormError error={issue.error} />
        <div className="flex justify-end gap-2">
          <Button onClick={close}>Cancel</Button>
          <Button type="submit" look="primary" busy={issue.isPending} disabled={scopes.length === 0}>
            Issue
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
