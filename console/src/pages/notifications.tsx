// The settings for e-mail notifications: whether a person gets e-mails, and about which applications.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type { ChangeNotifications } from '../../../contract/inbox.ts';
import { call } from '../api/call.ts';
import { applicationsQuery, notificationsQuery } from '../api/queries.ts';
import { CheckField } from '../ui/form.tsx';
import { Panel } from '../ui/page.tsx';
import { FormError, LoadError, LoadingRows } from '../ui/states.tsx';

export function Notifications() {
  const { data, error, refetch } = useQuery(notificationsQuery);
  const { data: applications } = useQuery(applicationsQuery);
  const client = useQueryClient();
  const change = useMutation({
    mutationFn: (body: ChangeNotifications) => call('changeNotifications', { body }),
    onSuccess: savedSettings => client.setQueryData(notificationsQuery.queryKey, savedSettings),
  });
  if (!data)
    return (
      <Panel title="E-mail notifications">
        {error ? (
          <LoadError error={error} retry={() => void refetch()} />
        ) : (
          <LoadingRows contentLabel="the settings" rows={2} />
        )}
      </Panel>
    );
  const { mails, mutedApplications, email } = data;
  const ownApplications = applications?.data ?? [];
  const mute = (id: string, isMuted: boolean): void => {
    const otherMutedIds = mutedApplications.filter(
      one => one !== id && ownApplications.some(application => application.id === one),
    );
    change.mutate({ mutedApplications: isMuted ? [...otherMutedIds, id] : otherMutedIds });
  };
  return (
    <Panel title="E-mail notifications">
      <div className="grid gap-4 p-4">
        <CheckField
          label="E-mail me when an agent is waiting for me"
          hint={
            email === undefined
              ? 'Your address is not verified, so you get no e-mails yet.'
              : `To ${email}, at most one e-mail every five minutes. Requests that were decided in the meantime are left out.`
          }
          checked={mails}
          disabled={change.isPending}
          onChange={event => change.mutate({ mails: event.target.checked })}
        />
        {mails && ownApplications.length > 1 && (
          <fieldset className="grid gap-2.5">
            <legend className="mb-2 text-sm text-soft">For these applications</legend>
            {ownApplications.map(({ id, name }) => (
              <CheckField
                key={id}
                label={name}
                checked={!mutedApplications.includes(id)}
                disabled={change.isPending}
                onChange={event => mute(id, !event.target.checked)}
              />
            ))}
          </fieldset>
        )}
        <FormError error={change.error} />
      </div>
    </Panel>
  );
}
