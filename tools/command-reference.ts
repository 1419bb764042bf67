// The reference page of the command line, made from commander's declarations.
import type { Command } from 'commander';

export function commandReference(program: Command, note: string): string {
  const groups = Map.groupBy(program.commands, command => command.helpGroup());
  return [
    '# Command line',
    '',
    `<!-- ${note} -->`,
    '',
    'In a checkout each command runs as `npm run -s berth -- COMMAND`. Settings are environment variables: see',
    '[operating](../operating.md).',
    '',
    ...[...groups].flatMap(([heading, commands]) => [
      `## ${heading.replace(/:$/, '')}`,
      '',
      ...commands.flatMap(sections),
    ]),
    '## Exit codes',
    '',
    '| Code | Means |',
    '| --- | --- |',
    ...exitCodeRows(program),
    '',
  ].join('\n');
}

function sections(command: Command): string[] {
  return leavesOf(command, 'berth').flatMap(({ name, command }) => section(name, command));
}

function leavesOf(command: Command, parentName: string): Array<{ name: string; command: Command }> {
  const name = `${parentName} ${command.name()}`;
  if (command.commands.length === 0) return [{ name, command }];
  return command.commands.flatMap(child => leavesOf(child, name));
}

function section(name: string, command: Command): string[] {
  return [
    `### ${name}`,
    '',
    command.description(),
    '',
    '```text',
    `${name} ${command.usage()}`.trim(),
    ...command.options.map(option => `  ${option.flags.padEnd(28)} ${option.description}`),
    '```',
    '',
  ];
}

/**
 * Reads the exit codes from the last lines of the program's help, which have the form "  CODE  meaning". Nothing else
 * explains the codes.
 */
function exitCodeRows(program: Command): string[] {
  let help = '';
  program.configureOutput({
    writeOut: text => {
      help += text;
    },
  });
  program.outputHelp();
  return [...help.matchAll(/^ {2}(\d) {2}(.+)$/gm)].map(match => `| ${match[1]} | ${match[2]} |`);
}
