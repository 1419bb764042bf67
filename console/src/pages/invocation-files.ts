// The files in the output of an invocation, with the links that the API made.

export interface LinkedFile {
  readonly url: string;
  readonly mimeType: string;
  readonly size: number;
}

/**
 * Returns the files in the members `artifact`, `artifacts` and `downloads` of an output, which may be any JSON value.
 * Values without the form of a file with an http(s) link are left out.
 */
export function filesIn(output: unknown): readonly LinkedFile[] {
  const { artifact, artifacts, downloads } = Object(output);
  const candidates: readonly unknown[] = [artifact, artifacts ?? [], downloads ?? []].flat();
  return candidates.flatMap(one => {
    const { downloadUrl: url, mimeType, size, checksum } = Object(one);
    const isFile = [url, mimeType, checksum].every(text => typeof text === 'string') && typeof size === 'number';
    return isFile && /^https?:\/\//.test(url) ? [{ url, mimeType, size }] : [];
  });
}
