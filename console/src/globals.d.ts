// What tools/build-console.ts puts in, and files that the bundler turns into modules.

declare const BERTH_VERSION: string;
declare const BERTH_OPERATIONS: Readonly<
  Record<string, { readonly method: string; readonly path: string; readonly credential: string }>
>;

declare module '*.css';

/** The player without what replays do not need; it has no declarations of its own. */
declare module 'hls.js/light' {
  import Hls from 'hls.js';
  export default Hls;
}
