// The error for a package that cannot be used. Contains a machine-readable reason and a message for people.
import { Fault } from '../../kit/fault.ts';

export type Reason =
  | 'not_a_zip'
  | 'damaged'
  | 'crx_version'
  | 'crx_signature'
  | 'too_many_entries'
  | 'too_large_unpacked'
  | 'compression_ratio'
  | 'encrypted'
  | 'compression_method'
  | 'link'
  | 'special_file'
  | 'absolute_path'
  | 'path_escape'
  | 'bad_name'
  | 'duplicate_name'
  | 'case_collision'
  | 'manifest_missing'
  | 'manifest_not_at_root'
  | 'manifest_not_json'
  | 'manifest_version'
  | 'manifest_field';

export const refusal = (why: Reason, problem: string, advice: string): Fault<'invalid_file'> =>
  new Fault('invalid_file', `The extension cannot be used: ${problem}.`, { advice, details: { reason: why } });
