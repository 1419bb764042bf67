// The newest seal of each chain, in a file in the data folder. Because the file is outside the database, it reveals
// whether the newest seals were removed from the database. The file may be older than the database, for example after a
// restore.
import { readFile, rename, rm } from 'node:fs/promises';
import { hasCode, syncFolder, writeSynced } from '../../kit/durable.ts';
import { giveToFolderOwner } from '../../kit/folder-owner.ts';

export interface SealHead {
  readonly number: number;
  readonly digest: string;
}

const LINE_PATTERN = /^([0-9a-f-]{36}) (\d{1,15}) (sha256:[0-9a-f]{64})$/;

export class SealHeads {
  readonly #folder: string;
  readonly #path: string;

  constructor(dataDir: string) {
    this.#folder = dataDir;
    this.#path = `${dataDir}/audit-heads`;
  }

  async read(): Promise<ReadonlyMap<string, SealHead>> {
    const text = await readFile(this.#path, 'utf8').catch(error => {
      if (hasCode(error, 'ENOENT')) return '';
      throw error;
    });
    return new Map(
      text.split('\n').flatMap(line => {
        const [, chain, number, digest] = LINE_PATTERN.exec(line) ?? [];
        return chain && digest ? [[chain, { number: Number(number), digest }] as const] : [];
      }),
    );
  }

  /** Replaces the stored heads of these chains, and keeps those of the other chains. */
  async advance(heads: ReadonlyMap<string, SealHead>): Promise<void> {
    const mergedHeads = new Map([...(await this.read()), ...heads]);
    const temporaryPath = `${this.#path}.${crypto.randomUUID()}`;
    const lines = [...mergedHeads].map(([chain, { number, digest }]) => `${chain} ${number} ${digest}\n`);
    try {
      await writeSynced(temporaryPath, file => file.writeFile(lines.join('')));
      giveToFolderOwner(temporaryPath, this.#folder);
      await rename(temporaryPath, this.#path);
    } finally {
      await rm(temporaryPath, { force: true });
    }
    await syncFolder(this.#folder);
  }
}
