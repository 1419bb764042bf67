// Personal access tokens of the account.
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { IssuedToken, Token, TokenScope } from '../../../contract/tokens.ts';
import { call } from '../api/call.ts';
import { isPerson, revokeKeys, signOut } from '../api/credentials.ts';
import { currentTokenQuery, tokensQuery } from '../api/queries.ts';
import { Button } from '../ui/button.tsx';
import { ConfirmDialog } from '../ui/confirm.tsx';
import { ListPanel } from '../ui/list-panel.tsx';
import { Page } from '../ui/page.tsx';
import { SecretDialog } from '../ui/reveal.tsx';
import { CredentialRow } from './credential-row.tsx';
import { IssueCredential } from './issue-credential.tsx';

type ScopeChoices = ReadonlyArray<readonly [TokenScope, string]>;

const DEFAULT_SCOPES = [
  ['applications:read', 'Read applications, keys and limits'],
  ['applications:write', 'Create and rename applications'],
  ['keys:write', 'Issue and revoke agent keys'],
  ['limits:write', 'Change limits'],
] as const satisfies ScopeChoices;
const OTHER_SCOPES = [
  ['operations:write', 'Configure and publish operations'],
  ['credentials:write', 'Write and rotate stored credentials'],
  ['members:write', 'Invite and change members'],
  ['credits:read', 'Read credit and its use'],
  ['audit:read', 'Read the audit log'],
] as const satisfies ScopeChoices;

export function TokensPage() {
  const { data, error, refetch } = useQuery(tokensQuery);
  const { data: currentToken } = useQuery({ ...currentTokenQuery, enabled: !isPerson() });
  const [isIssuing, setIsIssuing] = useState(false);
  const [tokenToRevoke, setTokenToRevoke] = useState<Token | undefined>();
  const [issuedToken, setIssuedToken] = useState<IssuedToken | undefined>();
  const client = useQueryClient();
  const refresh = () => client.invalidateQueries({ queryKey: tokensQuery.queryKey });
  const mayIssue = isPerson() || (currentToken?.scopes.includes('account:tokens') ?? false);
  return (
    <Page
      title="Access tokens"
      about="For scripts that manage applications and keys, and for signing in to the console. They cannot use browsers."
      actions={
        mayIssue && (
          <Button look="primary" icon="plus" onClick={() => setIsIssuing(true)}>
            Issue a token
          </Button>
        )
      }
    >
      <ListPanel contentLabel="access tokens" items={data?.data} error={error} retry={refetch} empty={null}>
        {token => (
          <CredentialRow
            key={token.id}
            credential={token}
            {...(token.id === currentToken?.id ? { note: 'your current sign-in' } : {})}
            actions={
              token.status === 'active' && (
                <Button look="quiet" aria-label={`Revoke ${token.name}`} onClick={() => setTokenToRevoke(token)}>
                  Revoke
                </Button>
              )
            }
          />
        )}
      </ListPanel>
      {isIssuing && (
        <IssueCredential
          title="Issue an access token"
          placeholder="ci"
          scopes={[...DEFAULT_SCOPES, ...OTHER_SCOPES]}
          defaultScopes={DEFAULT_SCOPES.map(([scope]) => scope)}
          days="90"
          issue={body => call('createToken', { body })}
          close={() => setIsIssuing(false)}
          onFinished={async token => {
            setIsIssuing(false);
            setIssuedToken(token);
            await refresh();
          }}
        />
      )}
      {tokenToRevoke && (
        <ConfirmDialog
          title={`Revoke ${tokenToRevoke.name}?`}
          action="Revoke"
          close={() => setTokenToRevoke(undefined)}
          onConfirm={async () => {
            // The keys of this tab are revoked first, because revoking them requires the token.
            if (tokenToRevoke.id === currentToken?.id) await revokeKeys();
            await call('revokeToken', { params: { id: tokenToRevoke.id } });
            if (tokenToRevoke.id === currentToken?.id) signOut('You revoked the token that you were signed in with.');
            else await refresh();
          }}
        >
          {tokenToRevoke.id === currentToken?.id
            ? 'You are signed in with this token: revoking it signs you out. This cannot be undone.'
            : 'Scripts that use this token are refused immediately. This cannot be undone.'}
        </ConfirmDialog>
      )}
      {issuedToken && (
        <SecretDialog
          title={`Token ${issuedToken.name}`}
          secret={issuedToken.token}
          secretKind="token"
          close={() => setIssuedToken(undefined)}
        />
      )}
    </Page>
  );
}
