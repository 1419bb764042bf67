// Builds the console with Vite. The table of operations is inserted at build time, so that the console has the methods
// and paths of this checkout, and shows no control for an operation that does not exist.
import { copyFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import tailwind from '@tailwindcss/vite';
import react from '@vitejs/plugin-react';
import { build } from 'vite';
import { OPERATION_IDS, operation } from '../contract/operations.ts';
import about from '../package.json' with { type: 'json' };

const CONSOLE_FOLDER = join(dirname(import.meta.dirname), 'console');

export async function buildConsole(outDir: string): Promise<void> {
  await build({
    root: CONSOLE_FOLDER,
    base: '/console/',
    configFile: false,
    logLevel: 'warn',
    plugins: [react(), tailwind()],
    define: {
      BERTH_VERSION: JSON.stringify(about.version),
      BERTH_OPERATIONS: JSON.stringify(operationTable()),
    },
    build: {
      outDir,
      emptyOutDir: true,
      target: 'es2023',
      // Nothing is inlined, because the Content Security Policy of the page allows only files of this origin.
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      reportCompressedSize: false,
      chunkSizeWarningLimit: 1500,
    },
  });
}

/** Builds the page of the live view. It needs no sign-in: its address is the only credential. */
export async function buildLiveView(outDir: string): Promise<void> {
  await build({
    root: join(CONSOLE_FOLDER, 'live'),
    base: '/live-view/',
    configFile: false,
    logLevel: 'warn',
    build: {
      outDir,
      emptyOutDir: true,
      target: 'es2023',
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      reportCompressedSize: false,
    },
  });
}

/**
 * Builds the pages on which consumers of applications sign in and decide Actions. They are small, because most are
 * opened on phones.
 */
export async function buildConsumerPages(outDir: string): Promise<void> {
  await build({
    root: join(CONSOLE_FOLDER, 'consumer'),
    base: '/consumer/',
    configFile: false,
    logLevel: 'warn',
    build: {
      outDir,
      emptyOutDir: true,
      target: 'es2023',
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      reportCompressedSize: false,
      rolldownOptions: {
        input: {
          signin: join(CONSOLE_FOLDER, 'consumer/signin.html'),
          home: join(CONSOLE_FOLDER, 'consumer/home.html'),
        },
      },
    },
  });
}

/**
 * Builds the frame in which snippets of the playground run. Its script is a classic script, because a page with an
 * opaque origin cannot load modules.
 */
export async function buildRunner(outDir: string): Promise<void> {
  const root = join(CONSOLE_FOLDER, 'runner');
  await build({
    root,
    configFile: false,
    // Warnings name the parts of Puppeteer that need Node, which `connect` does not reach. Puppeteer's own build for
    // browsers would cause no warnings, but lacks `page.setContent`.
    logLevel: 'error',
    publicDir: false,
    build: {
      outDir,
      emptyOutDir: true,
      target: 'es2023',
      lib: {
        entry: join(import.meta.dirname, '../console/runner/main.ts'),
        formats: ['iife'],
        name: 'runner',
        fileName: () => 'main.js',
      },
      reportCompressedSize: false,
    },
  });
  copyFileSync(join(root, 'index.html'), join(outDir, 'index.html'));
}

const operationTable = () =>
  Object.fromEntries(
    OPERATION_IDS.map(id => {
      const { method, path, credential } = operation(id);
      return [id, { method, path, credential }];
    }),
  );
