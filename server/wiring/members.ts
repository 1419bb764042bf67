// The wiring of members and invitations.
import type { Applications } from '../domain/identity/applications.ts';
import { Cursors } from '../domain/identity/cursors.ts';
import type { Mail } from '../domain/mail/mail.ts';
import { Invitations } from '../domain/members/invitations.ts';
import { Members } from '../domain/members/members.ts';
import type { Runtime } from '../kit/runtime.ts';
import type { Foundation } from './foundation.ts';

export interface MembersDeps {
  readonly applications: Pick<Applications, 'require'>;
  readonly mail: Pick<Mail, 'queue'>;
}

export function openMembers(
  { clock }: Runtime,
  { store, secret, audit, config, tallies }: Foundation,
  { applications, mail }: MembersDeps,
) {
  const parts = { store, clock, audit, applications, cursors: new Cursors(secret, clock) };
  const invitations = new Invitations({ ...parts, mail, tallies, publicUrl: config.publicUrl });
  return { service: { members: new Members(parts), invitations }, tasks: invitations.tasks };
}
