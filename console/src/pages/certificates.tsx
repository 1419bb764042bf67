// Certificate authorities of an application.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { Certificate } from '../../../contract/certificates.ts';
import { call } from '../api/call.ts';
import { certificatesQuery } from '../api/queries.ts';
import { Button } from '../ui/button.tsx';
import { ConfirmDialog } from '../ui/confirm.tsx';
import { CopyButton } from '../ui/copy-button.tsx';
import { FileButton } from '../ui/file-button.tsx';
import { ListPanel } from '../ui/list-panel.tsx';
import { Page } from '../ui/page.tsx';
import { EmptyState, FormError } from '../ui/states.tsx';
import { fullTime } from '../ui/time.tsx';

export function CertificatesPage({ app }: { readonly app: string }) {
  const { data, error, refetch } = useQuery(certificatesQuery(app));
  const [certificateToDelete, setCertificateToDelete] = useState<Certificate | undefined>();
  const client = useQueryClient();
  const refresh = () => client.invalidateQueries({ queryKey: certificatesQuery(app).queryKey });
  const upload = useMutation({
    mutationFn: (form: FormData) => call('uploadCertificate', { app, form }),
    onSuccess: refresh,
  });
  return (
    <Page
      title="Certificates"
      about="Certificate authorities. A session trusts only those that are named when it is created."
      actions={<FileButton label="Upload PEM" accept=".pem,.crt,.cer" busy={upload.isPending} onFile={upload.mutate} />}
    >
      {upload.error && (
        <div className="mb-3">
          <FormError error={upload.error} />
        </div>
      )}
      {upload.data?.warnings?.map(({ code, message }) => (
        <p key={code} role="status" className="mb-3 rounded-md bg-warn-soft px-3 py-2 text-sm">
          {message}
        </p>
      ))}
      <ListPanel
        contentLabel="certificates"
        items={data}
        error={error}
        retry={refetch}
        empty={
          <EmptyState icon="certificates" title="No certificates">
            Upload the certificate authority of your network as a PEM file, and name it when you create a session.
          </EmptyState>
        }
      >
        {one => <Row key={one.id} certificate={one} remove={() => setCertificateToDelete(one)} />}
      </ListPanel>
      {certificateToDelete && (
        <ConfirmDialog
          title="Delete these certificates?"
          action="Delete"
          close={() => setCertificateToDelete(undefined)}
          onConfirm={async () => {
            await call('deleteCertificate', { app, params: { id: certificateToDelete.id } });
            await refresh();
          }}
        >
          Running sessions keep trusting them. New sessions that name them are refused.
        </ConfirmDialog>
      )}
    </Page>
  );
}

const Row = ({
  certificate: { id, subjects, fingerprints, notAfter },
  remove,
}: {
  readonly certificate: Certificate;
  readonly remove: () => void;
}) => (
  <li className="flex flex-wrap items-center gap-x-6 gap-y-1 px-4 py-3">
    <div className="min-w-0 grow basis-64">
      {subjects.map((subject, at) => (
        <p key={fingerprints[at] ?? subject} className="break-words">
          <span className="font-medium">{subject}</span>
          <code className="block truncate font-mono text-xs text-soft">{fingerprints[at]}</code>
        </p>
      ))}
    </div>
    <span className="text-sm text-soft">until {fullTime(notAfter)}</span>
    <span className="flex min-w-0 items-center gap-1">
      <code className="truncate font-mono text-xs text-soft">{id}</code>
      <CopyButton text={id} label={`Copy the id of ${subjects[0] ?? 'the certificate'}`} />
    </span>
    <Button look="quiet" onClick={remove} aria-label={`Delete ${subjects[0] ?? id}`} className="-ml-2">
      Delete
    </Button>
  </li>
);
