// The dialog that creates or changes a webhook.
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import type { CreateWebhook, Webhook } from '../../../contract/webhooks.ts';
import { call } from '../api/call.ts';
import { TextField } from '../ui/form.tsx';
import { FormDialog } from '../ui/form-dialog.tsx';

type EventTypes = NonNullable<CreateWebhook['eventTypes']>;

export function WebhookForm({
  app,
  webhook,
  onFinished,
  close,
}: {
  readonly app: string;
  /** The webhook to change. If absent, the dialog creates one. */
  readonly webhook?: Webhook;
  readonly onFinished: () => Promise<void>;
  readonly close: () => void;
}) {
  const [name, setName] = useState(webhook?.name ?? '');
  const [url, setUrl] = useState(webhook?.url ?? '');
  const [types, setTypes] = useState(webhook?.eventTypes.join(', ') ?? '');
  const work = useMutation({
    mutationFn: () => {
      const body = { name, url: url.trim(), eventTypes: typesIn(types) };
      if (!webhook) return call('createWebhook', { params: { appId: app }, body });
      return call('changeWebhook', {
        params: { appId: app, webhookId: webhook.id },
        headers: { 'if-match': `"${webhook.revision}"` },
        body,
      });
    },
    onSuccess: onFinished,
  });
  return (
    <FormDialog
      title={webhook ? `Change ${webhook.name}` : 'Create a webhook'}
      action={webhook ? 'Change' : 'Create'}
      work={work}
      close={close}
    >
      <TextField
        label="Name"
        placeholder="billing"
        value={name}
        onChange={event => setName(event.target.value)}
        required
      />
      <TextField
        label="Address"
        hint="An https address. Private and internal addresses are refused unless the operator has allowed them."
        placeholder="https://hooks.example.com/berth"
        value={url}
        onChange={event => setUrl(event.target.value)}
        required
      />
      <TextField
        label="Event types"
        hint="Separated by commas. Leave empty for all types, including those that are added later."
        placeholder="session.started, session.ended"
        value={types}
        onChange={event => setTypes(event.target.value)}
      />
    </FormDialog>
  );
}

/** Does not validate the types: the service responds with 400 to an unknown event type. */
const typesIn = (text: string): EventTypes =>
  text
    .split(',')
    .map(word => word.trim())
    .filter(word => word !== '') as EventTypes;
