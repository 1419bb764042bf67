// Type declarations of setup.mjs, for its test. setup.mjs itself is plain JavaScript, because it runs before anything
// else is installed.

export interface DebianPackage {
  readonly name: string;
  readonly needs: string;
  /** Shows that the package is installed: all of these programs exist. */
  readonly commands?: readonly string[];
  /** Shows that the package is installed: one of these files exists. */
  readonly anyFile?: readonly string[];
  readonly unlessSet?: string;
  readonly optional?: boolean;
  readonly forTests?: boolean;
  readonly forSlowTests?: boolean;
}

export function missingNpmPackages(root: string): string[];
export function missingDebianPackages(
  packages?: readonly DebianPackage[],
  env?: Readonly<Record<string, string | undefined>>,
): DebianPackage[];
export function cleanEnvironment(env: Readonly<Record<string, string | undefined>>): Record<string, string>;
