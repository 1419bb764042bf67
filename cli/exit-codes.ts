// The exit codes of `berth`. They are stable: codes may be added, but the meaning of an existing code does not change.

export const EXIT = {
  done: 0,
  failed: 1,
  usage: 2,
  unfit: 3,
  notFound: 4,
  denied: 5,
  unreachable: 6,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

const MEANINGS: Readonly<Record<keyof typeof EXIT, string>> = {
  done: 'success',
  failed: 'failure; standard error has the reason and what to do',
  usage: 'the command line or a setting is invalid',
  unfit: 'the machine does not meet a requirement; `berth doctor` prints how to meet it',
  notFound: 'the resource that was named does not exist',
  denied: 'the service refused the credential, or no credential was sent',
  unreachable: 'the service does not respond',
};

export const exitCodeHelp = (): string =>
  [
    'Exit codes:',
    ...Object.entries(EXIT).map(([name, code]) => `  ${code}  ${MEANINGS[name as keyof typeof EXIT]}`),
  ].join('\n');
