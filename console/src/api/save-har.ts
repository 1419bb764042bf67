// Downloads the network log of a session as a HAR file.
import { ask } from './call.ts';

export async function saveHar(app: string, id: string): Promise<void> {
  const response = await ask('listSessionLogs', { app, params: { id }, query: { format: 'har' } });
  const url = URL.createObjectURL(await response.blob());
  const link = document.createElement('a');
  link.href = url;
  link.download = `${id}.har`;
  link.click();
  URL.revokeObjectURL(url);
}
