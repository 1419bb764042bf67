// `berth openapi`: prints the OpenAPI document, without a server.
import { stringify } from 'yaml';
import { openApiDocument } from '../../contract/openapi.ts';
import type { Terminal } from '../terminal.ts';

export function printOpenapi(terminal: Terminal, options: { json?: true }): void {
  const document = openApiDocument();
  terminal.print(
    options.json
      ? `${JSON.stringify(document, null, 2)}\n`
      : stringify(document, { lineWidth: 120, aliasDuplicateObjects: false }),
  );
}
