// Constants defined by tools/build-console.ts, and file types that the bundler imports as modules.

declare const BERTH_VERSION: string;
declare const BERTH_OPERATIONS: Readonly<
  Record<string, { readonly method: string; readonly path: string; readonly credential: string }>
>;

declare module '*.css';

/** A reduced build of the player, which has no type declarations. */
declare module 'hls.js/light' {
  import Hls from 'hls.js';
  export default Hls;
}
