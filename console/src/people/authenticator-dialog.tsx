// Adds an authenticator app: shows its seed as a QR code, and asks for a first code from the app.
import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { renderSVG } from 'uqr';
import { call } from '../api/call.ts';
import { TextField } from '../ui/form.tsx';
import { FormDialog } from '../ui/form-dialog.tsx';
import { LoadError, LoadingRows } from '../ui/states.tsx';

export function AuthenticatorDialog({
  close,
  onFinished,
}: {
  readonly close: () => void;
  readonly onFinished: (recoveryCodes: readonly string[]) => void;
}) {
  const seed = useQuery({
    queryKey: ['totp'],
    queryFn: () => call('beginTotp', {}),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
    retry: false,
  });
  const [code, setCode] = useState('');
  const work = useMutation({
    mutationFn: () => call('confirmTotp', { body: { code } }),
    onSuccess: ({ recoveryCodes }) => onFinished(recoveryCodes),
  });
  return (
    <FormDialog title="Add an authenticator app" action="Confirm" work={work} close={close} disabled={!seed.data}>
      {seed.error ? (
        <LoadError error={seed.error} retry={() => void seed.refetch()} />
      ) : !seed.data ? (
        <LoadingRows contentLabel="the seed" rows={3} />
      ) : (
        <>
          <p className="text-soft">Scan this with the app, or type the seed in. Then enter the code that it shows.</p>
          <img src={qrCodeUrlOf(seed.data.uri)} alt="QR code of the seed" className="size-44 rounded-md bg-white p-2" />
          <p className="font-mono text-sm break-all">{seed.data.secret.replace(/(.{4})(?=.)/g, '$1 ')}</p>
          <TextField
            label="Code"
            inputMode="numeric"
            autoComplete="one-time-code"
            value={code}
            onChange={event => setCode(event.target.value)}
            required
          />
        </>
      )}
    </FormDialog>
  );
}

const qrCodeUrlOf = (uri: string): string => `data:image/svg+xml,${encodeURIComponent(renderSVG(uri, { border: 1 }))}`;
