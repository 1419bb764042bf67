// Changes an agent key: its name, the IP addresses from which it may be used, and its grants.
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import type { AgentKey } from '../../../contract/agent-keys.ts';
import { call } from '../api/call.ts';
import { TextField } from '../ui/form.tsx';
import { FormDialog } from '../ui/form-dialog.tsx';
import { draftOf, type GrantDraft, GrantFields, grantOf } from './grant-fields.tsx';

export function ChangeKey({
  app,
  agentKey,
  onFinished,
  close,
}: {
  readonly app: string;
  readonly agentKey: AgentKey;
  readonly onFinished: () => Promise<void>;
  readonly close: () => void;
}) {
  const [name, setName] = useState(agentKey.name);
  const [ranges, setRanges] = useState(agentKey.cidrAllow.join(', '));
  const [grants, setGrants] = useState<readonly GrantDraft[]>(agentKey.grants.map(draftOf));
  const work = useMutation({
    mutationFn: async () =>
      call('changeAgentKey', {
        params: { appId: app, keyId: agentKey.id },
        headers: { 'if-match': `"${agentKey.revision}"` },
        body: { name, cidrAllow: ranges.split(/[\s,]+/).filter(Boolean), grants: grants.map(grantOf) },
      }),
    onSuccess: onFinished,
  });
  return (
    <FormDialog title={`Change ${agentKey.name}`} action="Save" work={work} close={close}>
      <TextField label="Name" value={name} onChange={event => setName(event.target.value)} maxLength={64} required />
      <TextField
        label="Address ranges"
        hint="The key works only from these ranges, for example 203.0.113.0/24. Leave empty to allow any address."
        value={ranges}
        onChange={event => setRanges(event.target.value)}
        spellCheck={false}
      />
      <GrantFields grants={grants} change={setGrants} />
    </FormDialog>
  );
}
