// The jobs that compile schemas and validate values against them. The code of each job is in a separate module, so that
// only worker threads load its libraries.
import type { Job } from '../../kit/worker-pool.ts';
import type { CompileInput, CompileOutput } from './compile-job.ts';
import type { ResponseInput, ResponseOutput } from './response-job.ts';
import type { ValidateInput, ValidateOutput } from './validate-job.ts';

const VALIDATE_LIMIT_MS = 1_500;
const COMPILE_LIMIT_MS = 1_500;
const READ_RESPONSE_LIMIT_MS = 10_000;

const moduleOf = (file: string): string => new URL(file, import.meta.url).href;

export const VALIDATE: Job<ValidateInput, ValidateOutput> = {
  name: 'validate a value',
  module: moduleOf('validate-job.ts'),
  limitMs: VALIDATE_LIMIT_MS,
  isSolo: true,
};

export const COMPILE: Job<CompileInput, CompileOutput> = {
  name: 'compile a schema',
  module: moduleOf('compile-job.ts'),
  limitMs: COMPILE_LIMIT_MS,
  isSolo: true,
};

export const READ_RESPONSE: Job<ResponseInput, ResponseOutput> = {
  name: 'read a response',
  module: moduleOf('response-job.ts'),
  limitMs: READ_RESPONSE_LIMIT_MS,
  isSolo: true,
};
