// `berth audit`: prints entries of the audit log, and verifies its seals.
import { CommandFailed } from '../command-failed.ts';
import { EXIT } from '../exit-codes.ts';
import { printJson, type Terminal, table } from '../terminal.ts';
import { withLocal } from './keys.ts';
import type { JsonOption } from './tokens.ts';

const NO_APPLICATION = '00000000-0000-0000-0000-000000000000';

export interface ListAuditOptions extends JsonOption {
  readonly application?: string;
  readonly limit: number;
}

const HEADING = ['AT', 'ACTION', 'OUTCOME', 'ACTOR', 'TARGET', 'IP'];

export function listAudit(terminal: Terminal, { application, limit, json }: ListAuditOptions): Promise<void> {
  return withLocal(terminal, async local => {
    const { id } = application === undefined ? {} : await local.application(application);
    const rows = (await local.listAudit(id, limit)).map(row => ({ ...row, at: row.at.toISOString() }));
    if (json) return printJson(terminal, rows);
    const tableRows = rows.map(({ at, action, outcome, actor, target, ip = '' }) => [
      ...[at, action, outcome, [actor.kind, actor.name ?? actor.id].filter(Boolean).join(' ')],
      ...[target ? `${target.kind} ${target.id}` : '', ip],
    ]);
    terminal.print(table([HEADING, ...tableRows]));
  });
}

export function verifyAudit(terminal: Terminal, options: JsonOption): Promise<void> {
  return withLocal(terminal, async local => {
    const { problems, ...counts } = await local.verifyAudit();
    const lines = problems.map(({ chain, what, number, how }) => {
      const chainLabel = chain === NO_APPLICATION ? 'no application' : `application ${chain}`;
      return `${what} ${number} (${chainLabel}) ${how === 'missing' ? 'is missing' : 'was changed'}`;
    });
    if (options.json) printJson(terminal, { ok: problems.length === 0, ...counts, problems });
    if (problems.length > 0) throw new CommandFailed(EXIT.failed, `the audit log is not intact: ${lines.join('; ')}.`);
    if (options.json) return;
    const { entries, unsealed, seals, chains } = counts;
    terminal.print(
      `The audit log is intact: ${entries} entries in ${chains} chains, with ${seals} seals. ${unsealed} entries are not sealed yet.\n`,
    );
  });
}
