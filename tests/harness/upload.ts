// Builds a multipart request with one file, as HTTP clients send it.
import type { ApiOptions } from './server.ts';

export async function uploadRequest(name: string, bytes: string | Buffer, field = 'file'): Promise<ApiOptions> {
  const form = new FormData();
  form.append(field, new Blob([new Uint8Array(Buffer.from(bytes))]), name);
  const encodedForm = new Response(form);
  return {
    body: Buffer.from(await encodedForm.arrayBuffer()),
    headers: { 'content-type': encodedForm.headers.get('content-type') ?? '' },
  };
}
