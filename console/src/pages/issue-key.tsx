// The form that issues an agent key.
import { useState } from 'react';
import type { AgentKeyScope, IssuedAgentKey } from '../../../contract/agent-keys.ts';
import { call } from '../api/call.ts';
import { type GrantDraft, GrantFields, grantOf } from './grant-fields.tsx';
import { IssueCredential } from './issue-credential.tsx';

type ScopeChoices = ReadonlyArray<readonly [AgentKeyScope, string]>;

const BROWSER_SCOPE_CHOICES: ScopeChoices = [
  ['browsers:read', 'List and read sessions'],
  ['browsers:write', 'Create, change and release sessions'],
  ['browsers:connect', 'Read connect addresses and control browsers'],
  ['browsers:files', 'Manage uploads, downloads and recordings'],
];
const OPERATION_SCOPE_CHOICES: ScopeChoices = [
  ['operations:discover', 'List the operations that the key has grants for'],
  ['operations:invoke', 'Call the operations that the key has grants for'],
  ['invocations:read', 'Read the invocations of the key and their receipts'],
  ['actions:prepare', 'Ask people to approve calls'],
  ['actions:execute', 'Execute calls that people approved'],
  ['handoffs:write', 'Ask people to take over a session'],
];

export function IssueKey({
  app,
  onFinished,
  close,
}: {
  readonly app: string;
  readonly onFinished: (issued: IssuedAgentKey) => Promise<void>;
  readonly close: () => void;
}) {
  const [grants, setGrants] = useState<readonly GrantDraft[]>([]);
  return (
    <IssueCredential
      title="Issue an agent key"
      placeholder="nightly crawl"
      scopes={[...BROWSER_SCOPE_CHOICES, ...OPERATION_SCOPE_CHOICES]}
      defaultScopes={BROWSER_SCOPE_CHOICES.map(([scope]) => scope)}
      days=""
      allowsNoExpiry
      additionalFields={<GrantFields grants={grants} change={setGrants} />}
      issue={body => call('createAgentKey', { params: { appId: app }, body: { ...body, grants: grants.map(grantOf) } })}
      onFinished={onFinished}
      close={close}
    />
  );
}
