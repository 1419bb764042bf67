// `berth receipts verify`: verifies a receipt from files, without the network.
import { readFile } from 'node:fs/promises';
import {
  type KeySet,
  type ReceiptClaims,
  type ReceiptHandoff,
  ReceiptInvalid,
  verifyReceipt,
} from '../../sdk/verify-receipt.ts';
import { CommandFailed } from '../command-failed.ts';
import { EXIT } from '../exit-codes.ts';
import { printJson, type Terminal } from '../terminal.ts';
import type { JsonOption } from './tokens.ts';

export interface VerifyReceiptCommandOptions extends JsonOption {
  readonly jwks: string;
  readonly input?: string;
  readonly output?: string;
  readonly action?: string;
  readonly issuer?: string;
  readonly audience?: string;
}

export async function verifyReceiptFile(
  terminal: Terminal,
  file: string,
  { jwks, input, output, action, issuer, audience, json }: VerifyReceiptCommandOptions,
): Promise<void> {
  const receipt = await readTextFile(file);
  const options = {
    keys: parseKeySet(await readJsonFile(jwks), jwks),
    ...(input === undefined ? {} : { input: await readJsonFile(input) }),
    ...(output === undefined ? {} : { output: await readJsonFile(output) }),
    ...(action === undefined ? {} : { action: await readJsonFile(action) }),
    ...(issuer === undefined ? {} : { issuer }),
    ...(audience === undefined ? {} : { audience }),
  };
  try {
    const claims = verifyReceipt(receipt, options);
    if (json) printJson(terminal, claims);
    else terminal.print(formatReceipt(claims));
  } catch (error) {
    if (error instanceof ReceiptInvalid)
      throw new CommandFailed(EXIT.failed, `the receipt is not valid: ${error.message}.`);
    throw error;
  }
}

const formatReceipt = ({ iss, sub, jti, berth }: ReceiptClaims): string => {
  const { operation, status, endedAt, caller, action, session } = berth;
  return [
    'The receipt is valid.',
    `  issued by  ${iss}`,
    `  about      ${sub} (${operation.id}, revision ${operation.revision})`,
    `  status     ${status}, ended at ${endedAt}`,
    `  called by  ${caller.kind} ${caller.id}`,
    ...(action ? [`  approved   ${approvalText(action)}`] : []),
    ...(session?.handoffs ?? []).map(handoff => `  control    ${controlText(handoff)}`),
    `  receipt    ${jti}`,
    '',
  ].join('\n');
};

const controlText = ({ by, from, to, masked, id }: ReceiptHandoff): string =>
  `${by.kind} ${by.id ?? ''}`.trim() +
  ` from ${from}${to ? ` to ${to}` : ''}${masked ? ', masked' : ''} (hand-off ${id})`;

const approvalText = ({ approval: { by, at, proof, rpId } }: NonNullable<ReceiptClaims['berth']['action']>): string =>
  `by ${by.kind} ${by.id} at ${at}${proof ? `, signed with a passkey for ${rpId}` : ''}`;

async function readTextFile(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    throw new CommandFailed(
      EXIT.notFound,
      `${file} cannot be read: ${error instanceof Error ? error.message : 'unknown'}`,
    );
  }
}

async function readJsonFile(file: string): Promise<unknown> {
  const text = await readTextFile(file);
  try {
    return JSON.parse(text);
  } catch {
    throw new CommandFailed(EXIT.usage, `${file} is not valid JSON.`);
  }
}

function parseKeySet(value: unknown, file: string): KeySet {
  const keys: unknown = Object(value).keys;
  const isKey = (key: unknown): boolean =>
    ['kid', 'kty', 'crv', 'x'].every(name => typeof Object(key)[name] === 'string');
  if (!Array.isArray(keys) || !keys.every(isKey))
    throw new CommandFailed(
      EXIT.usage,
      `${file} is not a key set. Save the response of /.well-known/jwks.json to a file, and pass that file.`,
    );
  return { keys };
}
