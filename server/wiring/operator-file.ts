// Reads a file that the operator named in a setting.
import { readFileSync } from 'node:fs';
import { badValue } from '../kit/environment.ts';

/** Throws BadConfig, with the name of the setting, if the file cannot be read. */
export function readOperatorFile(name: string, file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    throw badValue(name, file, 'a file that can be read');
  }
}
