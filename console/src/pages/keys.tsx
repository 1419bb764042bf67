// Agent keys of an application: issue, rotate, revoke. Inactive keys, and keys that the console issued for its own use,
// are initially hidden.
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { AgentKey, IssuedAgentKey } from '../../../contract/agent-keys.ts';
import { call } from '../api/call.ts';
import { CONSOLE_KEY_NAME } from '../api/credentials.ts';
import { keysQuery } from '../api/queries.ts';
import { isAtLeast, useRole } from '../api/use-role.ts';
import { Button } from '../ui/button.tsx';
import { ConfirmDialog } from '../ui/confirm.tsx';
import { ListPanel } from '../ui/list-panel.tsx';
import { Page } from '../ui/page.tsx';
import { SecretDialog } from '../ui/reveal.tsx';
import { EmptyState } from '../ui/states.tsx';
import { ChangeKey } from './change-key.tsx';
import { CredentialRow } from './credential-row.tsx';
import { IssueKey } from './issue-key.tsx';

type OpenDialog =
  | { readonly issue: true }
  | { readonly change: AgentKey }
  | { readonly rotate: AgentKey }
  | { readonly revoke: AgentKey };

const isHiddenByDefault = ({ name, status }: AgentKey): boolean => name === CONSOLE_KEY_NAME || status !== 'active';

export function KeysPage({ app }: { readonly app: string }) {
  const { data, error, refetch } = useQuery(keysQuery(app));
  const [openDialog, setOpenDialog] = useState<OpenDialog | undefined>();
  const [issuedKey, setIssuedKey] = useState<IssuedAgentKey | undefined>();
  const [showsAll, setShowsAll] = useState(false);
  const mayWrite = isAtLeast(useRole(app), 'developer');
  const client = useQueryClient();
  const onDone = async (key?: IssuedAgentKey): Promise<void> => {
    setOpenDialog(undefined);
    if (key) setIssuedKey(key);
    await client.invalidateQueries({ queryKey: keysQuery(app).queryKey });
  };
  const keys = data ?? [];
  const hiddenCount = keys.filter(isHiddenByDefault).length;
  const visibleKeys = showsAll ? keys : keys.filter(key => !isHiddenByDefault(key));
  return (
    <Page
      title="Agent keys"
      about="Credentials of programs that use browsers. A key is shown only once. Revoking it takes effect immediately."
      actions={
        mayWrite && (
          <Button look="primary" icon="plus" onClick={() => setOpenDialog({ issue: true })}>
            Issue a key
          </Button>
        )
      }
    >
      <ListPanel
        contentLabel="agent keys"
        items={data && visibleKeys}
        error={error}
        retry={refetch}
        empty={
          <EmptyState icon="keys" title="No active keys">
            Issue one key for each program, so that each can be revoked separately.
          </EmptyState>
        }
      >
        {key => (
          <CredentialRow
            key={key.id}
            credential={key}
            {...(key.name === CONSOLE_KEY_NAME ? { note: 'issued by the console, valid for one hour' } : {})}
            actions={
              mayWrite &&
              key.status === 'active' && (
                <>
                  <Button look="quiet" aria-label={`Change ${key.name}`} onClick={() => setOpenDialog({ change: key })}>
                    Change
                  </Button>
                  <Button look="quiet" aria-label={`Rotate ${key.name}`} onClick={() => setOpenDialog({ rotate: key })}>
                    Rotate
                  </Button>
                  <Button look="quiet" aria-label={`Revoke ${key.name}`} onClick={() => setOpenDialog({ revoke: key })}>
                    Revoke
                  </Button>
                </>
              )
            }
          />
        )}
      </ListPanel>
      {hiddenCount > 0 && (
        <Button look="quiet" className="mt-3" onClick={() => setShowsAll(!showsAll)} aria-expanded={showsAll}>
          {showsAll ? 'Hide inactive keys and console keys' : `Show ${hiddenCount} inactive keys and console keys`}
        </Button>
      )}
      {openDialog && 'issue' in openDialog && (
        <IssueKey app={app} onFinished={onDone} close={() => setOpenDialog(undefined)} />
      )}
      {openDialog && 'change' in openDialog && (
        <ChangeKey
          app={app}
          agentKey={openDialog.change}
          onFinished={() => onDone()}
          close={() => setOpenDialog(undefined)}
        />
      )}
      {openDialog && 'rotate' in openDialog && (
        <ConfirmDialog
          title={`Rotate ${openDialog.rotate.name}?`}
          action="Rotate"
          close={() => setOpenDialog(undefined)}
          onConfirm={async () => {
            const params = { appId: app, keyId: openDialog.rotate.id };
            await onDone(await call('rotateAgentKey', { params, body: {} }));
          }}
        >
          A new key with the same rights is issued and shown. The old key keeps working for an hour.
        </ConfirmDialog>
      )}
      {openDialog && 'revoke' in openDialog && (
        <ConfirmDialog
          title={`Revoke ${openDialog.revoke.name}?`}
          action="Revoke"
          close={() => setOpenDialog(undefined)}
          onConfirm={async () => {
            await call('revokeAgentKey', { params: { appId: app, keyId: openDialog.revoke.id } });
            await onDone();
          }}
        >
          Programs that use this key are refused immediately. Running sessions are not ended. This cannot be undone.
        </ConfirmDialog>
      )}
      {issuedKey && (
        <SecretDialog
          title={`Agent key ${issuedKey.name}`}
          secret={issuedKey.key}
          secretKind="agent key"
          close={() => setIssuedKey(undefined)}
        />
      )}
    </Page>
  );
}
