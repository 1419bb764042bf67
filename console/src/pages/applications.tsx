// Applications of the account.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import type { Application } from '../../../contract/applications.ts';
import { call } from '../api/call.ts';
import { applicationsQuery } from '../api/queries.ts';
import { Button } from '../ui/button.tsx';
import { CopyButton } from '../ui/copy-button.tsx';
import { TextField } from '../ui/form.tsx';
import { FormDialog } from '../ui/form-dialog.tsx';
import { ListPanel } from '../ui/list-panel.tsx';
import { Page } from '../ui/page.tsx';
import { EmptyState } from '../ui/states.tsx';
import { Ago } from '../ui/time.tsx';

export function ApplicationsPage() {
  const { data, error, refetch } = useQuery(applicationsQuery);
  const [editTarget, setEditTarget] = useState<Application | 'new' | undefined>();
  return (
    <Page
      title="Applications"
      about="An application owns agent keys, sessions and limits. Applications cannot see each other's sessions."
      actions={
        <Button look="primary" icon="plus" onClick={() => setEditTarget('new')}>
          New application
        </Button>
      }
    >
      <ListPanel
        contentLabel="applications"
        items={data?.data}
        error={error}
        retry={refetch}
        empty={
          <EmptyState icon="applications" title="No applications">
            Create an application, then issue agent keys for it.
          </EmptyState>
        }
      >
        {one => <ApplicationRow key={one.id} application={one} rename={() => setEditTarget(one)} />}
      </ListPanel>
      {editTarget && <EditDialog applicationToEdit={editTarget} close={() => setEditTarget(undefined)} />}
    </Page>
  );
}

const ApplicationRow = ({
  application: { id, name, role, createdAt },
  rename,
}: {
  readonly application: Application;
  readonly rename: () => void;
}) => (
  <li className="flex flex-wrap items-center gap-x-6 gap-y-1 px-4 py-2.5">
    <Link to="/a/$app" params={{ app: id }} className="min-w-0 grow basis-52 font-medium hover:text-accent">
      {name}
    </Link>
    <span className="flex min-w-0 items-center gap-1">
      <code className="truncate font-mono text-xs text-soft">{id}</code>
      <CopyButton text={id} label={`Copy the id of ${name}`} />
    </span>
    <span className="w-16 text-sm text-soft">{role}</span>
    <span className="w-20 text-sm text-soft">
      <Ago time={createdAt} />
    </span>
    <Button look="quiet" onClick={rename} aria-label={`Rename ${name}`}>
      Rename
    </Button>
  </li>
);

function EditDialog({
  applicationToEdit,
  close,
}: {
  readonly applicationToEdit: Application | 'new';
  readonly close: () => void;
}) {
  const isNew = applicationToEdit === 'new';
  const [name, setName] = useState(isNew ? '' : applicationToEdit.name);
  const client = useQueryClient();
  const navigate = useNavigate();
  const save = useMutation({
    mutationFn: () =>
      isNew
        ? call('createApplication', { body: { name } })
        : call('renameApplication', {
            params: { appId: applicationToEdit.id },
            body: { name },
            headers: { 'if-match': `"${applicationToEdit.revision}"` },
          }),
    onSuccess: async ({ id }) => {
      await client.invalidateQueries({ queryKey: applicationsQuery.queryKey });
      close();
      if (isNew) await navigate({ to: '/a/$app/keys', params: { app: id } });
    },
  });
  return (
    <FormDialog
      title={isNew ? 'New application' : 'Rename application'}
      action={isNew ? 'Create' : 'Rename'}
      work={save}
      close={close}
    >
      <TextField
        label="Name"
        hint="Display name. Need not be unique."
        value={name}
        onChange={event => setName(event.target.value)}
        maxLength={64}
        required
      />
    </FormDialog>
  );
}
