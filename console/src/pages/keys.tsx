// Agent keys of an application: issue, rotate, revoke. Inactive keys and keys of consoles are hidden at first.
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { AgentKey, IssuedAgentKey } from '../../../contract/agent-keys.ts';
import { call } from '../api/call.ts';
import { CONSOLE_KEY_NAME } from '../api/credentials.ts';
import { keysQuery } from '../api/queries.ts';
import { isAtLeast, useRole } from '../api/use-role.ts';
import { Button } from '../ui/button.tsx';
import { Confirm } from '../ui/confirm.tsx';
import { ListPanel } from '../ui/list-panel.tsx';
import { Page } from '../ui/page.tsx';
import { Reveal } from '../ui/reveal.tsx';
import { Empty } from '../ui/states.tsx';
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
  const [doing, setDoing] = useState<OpenDialog | undefined>();
  const [issued, setIssued] = useState<IssuedAgentKey | undefined>();
  const [all, setAll] = useState(false);
  const mayWrite = isAtLeast(useRole(app), 'developer');
  const client = useQueryClient();
  const done = async (key?: IssuedAgentKey): Promise<void> => {
    setDoing(undefined);
    if (key) setIssued(key);
    await client.invalidateQueries({ queryKey: keysQuery(app).queryKey });
  };
  const keys = data ?? [];
  const hiddenCount = keys.filter(isHiddenByDefault).length;
  const shown = all ? keys : keys.filter(key => !isHiddenByDefault(key));
  return (
    <Page
      title="Agent keys"
      about="Credentials of programs that use browsers. A key is shown only once. Revoking it takes effect immediately."
      actions={
        mayWrite && (
          <Button look="primary" icon="plus" onClick={() => setDoing({ issue: true })}>
            Issue a key
          </Button>
        )
      }
    >
      <ListPanel
        what="agent keys"
        items={data && shown}
        error={error}
        retry={refetch}
        empty={
          <Empty icon="keys" title="No active keys">
            Issue one key for each program, so that each can be revoked separately.
          </Empty>
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
                  <Button look="quiet" aria-label={`Change ${key.name}`} onClick={() => setDoing({ change: key })}>
                    Change
                  </Button>
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
        )}
      </ListPanel>
      {hiddenCount > 0 && (
        <Button look="quiet" className="mt-3" onClick={() => setAll(!all)} aria-expanded={all}>
          {all ? 'Hide inactive keys and console keys' : `Show ${hiddenCount} inactive keys and console keys`}
        </Button>
      )}
      {doing && 'issue' in doing && <IssueKey app={app} done={done} close={() => setDoing(undefined)} />}
      {doing && 'change' in doing && (
        <ChangeKey app={app} agentKey={doing.change} done={() => done()} close={() => setDoing(undefined)} />
      )}
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
          A new key with the same rights is issued and shown. The old key keeps working for an hour.
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
          Programs that use this key are refused immediately. Running sessions are not ended. This cannot be undone.
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
