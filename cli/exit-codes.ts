// What the exit code of `berth` means. Promises: codes are added, never given another meaning.

export const EXIT = {
  done: 0,
  failed: 1,
  usage: 2,
  unfit: 3,
  notFound: 4,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

const MEANINGS: Readonly<Record<keyof typeof EXIT, string>> = {
  done: 'done',
  failed: 'failed; the error output says why and what to do',
  usage: 'the command line or a setting is wrong',
  unfit: 'the machine lacks something that is needed; `berth doctor` says how to mend it',
  notFound: 'what was named does not exist',
};

export const exitCodeHelp = (): string =>
  [
    'Exit codes:',
    ...Object.entries(EXIT).map(([name, code]) => `  ${code}  ${MEANINGS[name as keyof typeof EXIT]}`),
  ].join('\n');
