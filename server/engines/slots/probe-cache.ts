// Caches the result of a probe that an engine passed. The result is valid until the machine is rebooted, or the kernel,
// browser, bubblewrap, form or user changes. Failures are not cached.
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { release } from 'node:os';
import { join } from 'node:path';
import { bootId } from './process-table.ts';
import type { Engine, Form } from './slots.ts';
import { findTool } from './tools.ts';

/** Increase this number when a check is added to the probe. */
const PROBE_VERSION = 2;

export class ProbeCache {
  readonly #file: string;
  readonly #key: string;

  constructor(dataDir: string, form: Form, { engine, path }: { readonly engine: Engine; readonly path: string }) {
    this.#file = join(dataDir, engine === 'chromium' ? 'isolation-probe.json' : `isolation-probe-${engine}.json`);
    const fingerprints = [path, findTool('bwrap')].map(fingerprintOf);
    this.#key = JSON.stringify([PROBE_VERSION, bootId(), release(), form, process.getuid?.() ?? -1, ...fingerprints]);
  }

  hasPassed(): boolean {
    try {
      const storedValue: unknown = JSON.parse(readFileSync(this.#file, 'utf8'));
      return (
        typeof storedValue === 'object' &&
        storedValue !== null &&
        'passed' in storedValue &&
        storedValue.passed === this.#key
      );
    } catch {
      return false;
    }
  }

  recordPass(): void {
    writeFileSync(this.#file, JSON.stringify({ passed: this.#key }), { mode: 0o600 });
  }
}

function fingerprintOf(path: string | undefined): string {
  if (path === undefined) return 'absent';
  const { mtimeMs, size } = statSync(path);
  return `${path} ${mtimeMs} ${size}`;
}
