// `berth doctor`: prints a line for each requirement: whether it is met, and if not, how to meet it.
import { examine, type Finding } from '../../server/examine.ts';
import { CommandFailed } from '../command-failed.ts';
import { EXIT } from '../exit-codes.ts';
import { printJson, type Terminal } from '../terminal.ts';

export async function runDoctor(terminal: Terminal, options: { json?: true }): Promise<void> {
  const findings = await examine(terminal.env);
  const unmetRequirements = findings.filter(one => one.required && !one.ok);
  if (options.json) printJson(terminal, { ok: unmetRequirements.length === 0, findings });
  else terminal.print(findings.map(lineOf).join(''));
  if (unmetRequirements.length > 0)
    throw new CommandFailed(
      EXIT.unfit,
      `missing requirements: ${unmetRequirements.map(one => one.name).join(', ')}. The service cannot run until this machine meets them.`,
    );
}

function lineOf(finding: Finding): string {
  const mark = finding.ok ? 'ok      ' : finding.required ? 'MISSING ' : 'without ';
  const remedyLine = finding.cure === '' ? '' : `         -> ${finding.cure}\n`;
  return `${mark} ${finding.name}: ${finding.detail}\n${remedyLine}`;
}
