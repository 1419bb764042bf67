// `berth config check`: reads the settings as the service would, and reports every error in them. Starts nothing.
import { readConfig } from '../../server/config.ts';
import { printJson, type Terminal } from '../terminal.ts';

/**
 * If settings are invalid, readConfig throws an error that names all of them. The command then exits with the code for
 * usage errors.
 */
export function checkConfig(terminal: Terminal, { json }: { json?: true }): void {
  const { listen, operatorListen, publicUrl, dataDir, databaseUrl, s3, slots, warm, engine } = readConfig(terminal.env);
  const settings = {
    listen: `${listen.host}:${listen.port}`,
    operatorListen: operatorListen ? `${operatorListen.host}:${operatorListen.port}` : 'off',
    ...{
      publicUrl,
      dataDir,
      database: databaseUrl ? 'DATABASE_URL' : 'embedded',
      files: s3 ? `bucket ${s3.bucket}` : 'disk',
    },
    ...{ slots, warm, engine },
  };
  if (json) return printJson(terminal, { ok: true, ...settings });
  const width = Math.max(...Object.keys(settings).map(name => name.length)) + 2;
  terminal.print('The settings are valid.\n');
  for (const [name, value] of Object.entries(settings)) terminal.print(`${name.padEnd(width)}${value}\n`);
}
