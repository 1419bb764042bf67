// Personal access tokens of the account: what scripts manage applications and keys with, and what signs in here.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import type { IssuedToken, Token, TokenScope } from '../../../contract/tokens.ts';
import { call } from '../api/call.ts';
import { signOut } from '../api/credentials.ts';
import { currentTokenQuery, tokensQuery } from '../api/queries.ts';
import { Button } from '../ui/button.tsx';
import { Confirm } from '../ui/confirm.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { CheckField, TextField } from '../ui/form.tsx';
import { Page, Panel } from '../ui/page.tsx';
import { Reveal } from '../ui/reveal.tsx';
import { Failed, FormError, Loading } from '../ui/states.tsx';
import { CredentialRow } from './credential-row.tsx';
import { ExpiryField, expiresAtOf } from './expiry.tsx';

const SCOPES = [
  ['applications:read', 'Read applications, keys and limits'],
  ['applications:write', 'Create and rename applications'],
  ['keys:write', 'Issue and revoke agent keys'],
  ['limits:write', 'Change limits'],
] as const satisfies ReadonlyArray<readonly [TokenScope, string]>;

export function TokensPage() {
  const { data, error, refetch } = useQuery(tokensQuery);
  const { data: current } = useQuery(currentTokenQuery);
  const [issuing, setIssuing] = useState(false);
  const [revoking, setRevoking] = useState<Token | undefined>();
  const [issued, setIssued] = useState<IssuedToken | undefined>();
  const client = useQueryClient();
  const refresh = () => client.invalidateQueries({ queryKey: tokensQuery.queryKey });
  const mayIssue = current?.scopes.includes('account:tokens') ?? false;
  return (
    <Page
      title="Access tokens"
      about="For scripts that manage applications and keys, and to sign in here. They open no browser."
      actions={
        mayIssue && (
          <Button look="primary" icon="plus" onClick={() => setIssuing(true)}>
            Issue a token
          </Button>
        )
      }
    >
      <Panel>
        {error ? (
          <Failed error={error} retry={() => void refetch()} />
        ) : !data ? (
          <Loading what="access tokens" rows={3} />
        ) : (
          <ul className="divide-y divide-line">
            {data.data.map(token => (
              <CredentialRow
                key={token.id}
                credential={token}
                {...(token.id === current?.id ? { note: 'you are signed in with it' } : {})}
                actions={
                  token.status === 'active' && (
                    <Button look="quiet" aria-label={`Revoke ${token.name}`} onClick={() => setRevoking(token)}>
                      Revoke
                    </Button>
                  )
                }
              />
            ))}
          </ul>
        )}
      </Panel>
      {issuing && (
        <Issue
          close={() => setIssuing(false)}
          done={async token => {
            setIssuing(false);
            setIssued(token);
            await refresh();
          }}
        />
      )}
      {revoking && (
        <Confirm
          title={`Revoke ${revoking.name}?`}
          action="Revoke"
          close={() => setRevoking(undefined)}
          act={async () => {
            await call('revokeToken', { params: { id: revoking.id } });
            if (revoking.id === current?.id) signOut('You revoked the token that you were signed in with.');
            else await refresh();
          }}
        >
          {revoking.id === current?.id
            ? 'You are signed in with this token: revoking it signs you out. This cannot be undone.'
            : 'Scripts that use it are refused from now on. This cannot be undone.'}
        </Confirm>
      )}
      {issued && (
        <Reveal title={`Token ${issued.name}`} secret={issued.token} what="token" close={() => setIssued(undefined)} />
      )}
    </Page>
  );
}

function Issue({ close, done }: { readonly close: () => void; readonly done: (token: IssuedToken) => Promise<void> }) {
  const [name, setName] = useState('');
  const [days, setDays] = useState('90');
  const [scopes, setScopes] = useState<readonly TokenScope[]>(SCOPES.map(([scope]) => scope));
  const issue = useMutation({
    mutationFn: () => call('createToken', { body: { name, scopes: [...scopes], ...expiresAtOf(days) } }),
    onSuccess: done,
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    issue.mutate();
  };
  return (
    <Dialog open onClose={close} title="Issue an access token">
      <form onSubmit={submit} className="grid gap-4">
        <TextField
          label="Name"
          placeholder="ci"
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
        <ExpiryField value={days} onChange={setDays} />
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
