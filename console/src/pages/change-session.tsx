// Changes the time limit and metadata of a running session.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useId, useState } from 'react';
import type { JsonObject } from '../../../contract/common.ts';
import type { Session } from '../../../contract/sessions.ts';
import { call } from '../api/call.ts';
import { TextField } from '../ui/form.tsx';
import { FormDialog } from '../ui/form-dialog.tsx';

export function ChangeSession({
  app,
  session,
  close,
}: {
  readonly app: string;
  readonly session: Session;
  readonly close: () => void;
}) {
  const currentTimeoutSeconds = Math.round((Date.parse(session.expiresAt) - Date.parse(session.createdAt)) / 1000);
  const [minutes, setMinutes] = useState(String(Number((currentTimeoutSeconds / 60).toFixed(1))));
  const initialMetadata = JSON.stringify(session.userMetadata ?? {}, null, 2);
  const [metadata, setMetadata] = useState(initialMetadata);
  const id = useId();
  const client = useQueryClient();
  const save = useMutation({
    mutationFn: () => {
      const timeout = Math.round(Number(minutes) * 60);
      const body = {
        ...(timeout === currentTimeoutSeconds ? {} : { timeout }),
        ...(metadata === initialMetadata ? {} : { userMetadata: readMetadata(metadata) }),
      };
      return call('updateSession', { app, params: { id: session.id }, body });
    },
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: ['session', app, session.id] });
      close();
    },
  });
  return (
    <FormDialog title="Change session" action="Save" work={save} close={close}>
      <TextField
        label="Ends after, minutes"
        hint="Counted from the creation of the session, not from now."
        type="number"
        min={1}
        max={360}
        step="any"
        value={minutes}
        onChange={event => setMinutes(event.target.value)}
        required
      />
      <div>
        <label htmlFor={id} className="mb-1 block text-sm font-medium">
          Metadata, as JSON
        </label>
        <textarea
          id={id}
          rows={6}
          spellCheck={false}
          value={metadata}
          onChange={event => setMetadata(event.target.value)}
          className="w-full rounded-md border border-line-strong bg-raised px-2.5 py-2 font-mono text-xs leading-relaxed"
        />
      </div>
    </FormDialog>
  );
}

function readMetadata(text: string): JsonObject {
  try {
    const value: unknown = JSON.parse(text);
    if (value !== null && typeof value === 'object' && !Array.isArray(value)) return value as JsonObject;
  } catch {
    // The error is thrown below.
  }
  throw new Error('The metadata is not a JSON object. Enter, for example, {"run": "r-1842"}.');
}
