// Members of an application, and invitations to it.
import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { Invitation, IssuedInvitation } from '../../../contract/invitations.ts';
import type { Member } from '../../../contract/members.ts';
import type { Role } from '../../../contract/roles.ts';
import { call } from '../api/call.ts';
import { accountQuery, invitationsQuery, membersQuery } from '../api/queries.ts';
import { isAtLeast, roleNamed, useRole } from '../api/use-role.ts';
import { Button } from '../ui/button.tsx';
import { ConfirmDialog } from '../ui/confirm.tsx';
import { SelectField, TextField } from '../ui/form.tsx';
import { FormDialog } from '../ui/form-dialog.tsx';
import { ListPanel } from '../ui/list-panel.tsx';
import { LoadMore } from '../ui/more.tsx';
import { Page } from '../ui/page.tsx';
import { SecretDialog } from '../ui/reveal.tsx';
import { EmptyState } from '../ui/states.tsx';
import { Ago, TimeText } from '../ui/time.tsx';

/** Roles with their labels, from the one with the fewest rights to the one with the most. */
const ROLES = [
  ['viewer', 'Viewer: reads everything'],
  ['developer', 'Developer: also issues agent keys'],
  ['admin', 'Admin: also invites and removes members'],
  ['owner', 'Owner: also changes limits and owners'],
] as const satisfies ReadonlyArray<readonly [Role, string]>;

export function MembersPage({ app }: { readonly app: string }) {
  const role = useRole(app);
  const isAdmin = isAtLeast(role, 'admin');
  const [isInviting, setIsInviting] = useState(false);
  const [issuedInvitation, setIssuedInvitation] = useState<IssuedInvitation | undefined>();
  const client = useQueryClient();
  return (
    <Page
      title="Members"
      about="People who can open this application, each with a role. Programs use agent keys instead."
      actions={
        isAdmin && (
          <Button look="primary" icon="plus" onClick={() => setIsInviting(true)}>
            Invite
          </Button>
        )
      }
    >
      <MemberList app={app} mine={role} />
      {isAdmin && <InvitationList app={app} />}
      {isInviting && (
        <InviteDialog
          app={app}
          ownRole={role}
          close={() => setIsInviting(false)}
          onFinished={async invitation => {
            setIsInviting(false);
            setIssuedInvitation(invitation);
            await client.invalidateQueries({ queryKey: invitationsQuery(app).queryKey });
          }}
        />
      )}
      {issuedInvitation && (
        <SecretDialog
          title={`Invitation for ${issuedInvitation.email}`}
          secret={issuedInvitation.acceptUrl}
          secretKind="link"
          close={() => setIssuedInvitation(undefined)}
        />
      )}
    </Page>
  );
}

function MemberList({ app, mine: ownRole }: { readonly app: string; readonly mine: Role | undefined }) {
  const members = useInfiniteQuery(membersQuery(app));
  const { data, error, refetch } = members;
  const { data: account } = useQuery(accountQuery);
  const [memberToRemove, setMemberToRemove] = useState<Member | undefined>();
  return (
    <>
      <ListPanel
        contentLabel="members"
        items={data?.pages.flatMap(page => page.data)}
        error={error}
        retry={refetch}
        empty={null}
      >
        {member => (
          <MemberRow
            key={member.accountId}
            app={app}
            member={member}
            isMe={member.accountId === account?.id}
            ownRole={ownRole}
            remove={() => setMemberToRemove(member)}
          />
        )}
      </ListPanel>
      <LoadMore list={members} buttonText="Show more members" />
      {memberToRemove && (
        <ConfirmDialog
          title={
            memberToRemove.accountId === account?.id ? 'Leave this application?' : `Remove ${memberToRemove.name}?`
          }
          action={memberToRemove.accountId === account?.id ? 'Leave' : 'Remove'}
          close={() => setMemberToRemove(undefined)}
          onConfirm={async () => {
            await call('removeMember', { params: { appId: app, accountId: memberToRemove.accountId } });
            if (memberToRemove.accountId === account?.id) location.assign('/console/');
            else await refetch();
          }}
        >
          Access ends immediately, including for tokens. Agent keys and running sessions of the application are not
          affected.
        </ConfirmDialog>
      )}
    </>
  );
}

function MemberRow({
  app,
  member,
  isMe,
  ownRole,
  remove,
}: {
  readonly app: string;
  readonly member: Member;
  readonly isMe: boolean;
  readonly ownRole: Role | undefined;
  readonly remove: () => void;
}) {
  const client = useQueryClient();
  const { accountId, name, email, role, joinedAt, lastActiveAt } = member;
  const work = useMutation({
    mutationFn: (newRole: Role) => call('changeMember', { params: { appId: app, accountId }, body: { role: newRole } }),
    onSettled: () => client.invalidateQueries({ queryKey: membersQuery(app).queryKey }),
  });
  const mayChange = isAtLeast(ownRole, 'admin') && isAtLeast(ownRole, role);
  return (
    <li className="grid gap-x-6 gap-y-2 px-4 py-3 md:grid-cols-[minmax(0,1fr)_140px_180px_auto] md:items-center">
      <div className="min-w-0">
        <p className="truncate font-medium">
          {name}
          {isMe && <span className="ml-2 text-xs font-normal text-faint">you</span>}
        </p>
        {email && <p className="truncate text-sm text-soft">{email}</p>}
        {work.error && (
          <p role="alert" className="text-sm text-bad">
            {work.error.message}
          </p>
        )}
      </div>
      {mayChange ? (
        <select
          aria-label={`Role of ${name}`}
          value={role}
          disabled={work.isPending}
          onChange={event => work.mutate(roleNamed(event.target.value))}
          className="h-9 rounded-md border border-line-strong bg-raised px-2 text-sm md:h-8"
        >
          {ROLES.filter(([one]) => isAtLeast(ownRole, one)).map(([one]) => (
            <option key={one} value={one}>
              {one}
            </option>
          ))}
        </select>
      ) : (
        <p className="text-sm">{role}</p>
      )}
      <p className="text-xs leading-relaxed text-soft">
        Joined <Ago time={joinedAt} />
        <br />
        {lastActiveAt ? (
          <>
            Active <Ago time={lastActiveAt} />
          </>
        ) : (
          'Never active'
        )}
      </p>
      <div className="flex gap-1 max-md:-ml-2 md:w-24 md:justify-end">
        {(isMe || mayChange) && (
          <Button look="quiet" aria-label={isMe ? 'Leave' : `Remove ${name}`} onClick={remove}>
            {isMe ? 'Leave' : 'Remove'}
          </Button>
        )}
      </div>
    </li>
  );
}

function InvitationList({ app }: { readonly app: string }) {
  const invitations = useInfiniteQuery(invitationsQuery(app));
  const { data, error, refetch } = invitations;
  const [invitationToRevoke, setInvitationToRevoke] = useState<Invitation | undefined>();
  return (
    <section className="mt-8">
      <h2 className="mb-3 text-base font-semibold">Invitations</h2>
      <ListPanel
        contentLabel="invitations"
        items={data?.pages.flatMap(page => page.data)}
        error={error}
        retry={refetch}
        empty={
          <EmptyState icon="account" title="No invitations">
            Invite people by their e-mail address.
          </EmptyState>
        }
      >
        {invitation => (
          <li
            key={invitation.id}
            className="grid gap-x-6 gap-y-1 px-4 py-3 md:grid-cols-[minmax(0,1fr)_140px_180px_auto] md:items-center"
          >
            <p className="truncate font-medium">{invitation.email}</p>
            <p className="text-sm">{invitation.role}</p>
            <p className="text-xs leading-relaxed text-soft">
              <InvitationState invitation={invitation} />
            </p>
            <div className="flex max-md:-ml-2 md:w-24 md:justify-end">
              {invitation.status === 'pending' && (
                <Button
                  look="quiet"
                  aria-label={`Revoke the invitation for ${invitation.email}`}
                  onClick={() => setInvitationToRevoke(invitation)}
                >
                  Revoke
                </Button>
              )}
            </div>
          </li>
        )}
      </ListPanel>
      <LoadMore list={invitations} buttonText="Show older invitations" />
      {invitationToRevoke && (
        <ConfirmDialog
          title={`Revoke the invitation for ${invitationToRevoke.email}?`}
          action="Revoke"
          close={() => setInvitationToRevoke(undefined)}
          onConfirm={async () => {
            await call('revokeInvitation', { params: { appId: app, invitationId: invitationToRevoke.id } });
            await refetch();
          }}
        >
          The link stops working immediately.
        </ConfirmDialog>
      )}
    </section>
  );
}

const ENDED_STATUS_TEXTS = { accepted: 'Accepted', revoked: 'Revoked', expired: 'Expired unused' } as const;

/** Shows when a pending invitation expires, or how and when it ended. */
const InvitationState = ({ invitation: { status, expiresAt, endedAt } }: { readonly invitation: Invitation }) =>
  status === 'pending' ? (
    <>
      Until
      <br />
      <TimeText time={expiresAt} />
    </>
  ) : (
    <>
      {ENDED_STATUS_TEXTS[status]}
      {endedAt && (
        <>
          <br />
          <TimeText time={endedAt} />
        </>
      )}
    </>
  );

function InviteDialog({
  app,
  ownRole,
  close,
  onFinished,
}: {
  readonly app: string;
  readonly ownRole: Role | undefined;
  readonly close: () => void;
  readonly onFinished: (invitation: IssuedInvitation) => Promise<void>;
}) {
  const [email, setEmail] = useState('');
  const [role, setRole] = useState<Role>('developer');
  const work = useMutation({
    mutationFn: () => call('createInvitation', { params: { appId: app }, body: { email, role } }),
    onSuccess: onFinished,
  });
  return (
    <FormDialog title="Invite a person" action="Invite" work={work} close={close}>
      <TextField
        label="E-mail address"
        hint="Only the account with this address can accept. The link is valid for seven days."
        type="email"
        value={email}
        onChange={event => setEmail(event.target.value)}
        required
      />
      <SelectField label="Role" value={role} onChange={event => setRole(roleNamed(event.target.value))}>
        {ROLES.filter(([one]) => isAtLeast(ownRole, one)).map(([one, words]) => (
          <option key={one} value={one}>
            {words}
          </option>
        ))}
      </SelectField>
    </FormDialog>
  );
}
