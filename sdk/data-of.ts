// Gets the body from the result of an openapi-fetch call, which also contains the response.
import { BerthError } from './berth-error.ts';

/**
 * Returns the body: `await dataOf(berth.GET(...))`. If the request fails, the promise of the client rejects, and its
 * error is thrown unchanged. A response without a body is an error with the code `unexpected_answer`.
 */
export async function dataOf<Data>(
  pendingResult: Promise<{ data?: Data | undefined; response: Response }>,
): Promise<Data> {
  const { data, response } = await pendingResult;
  if (data !== undefined) return data;
  const { url, status } = response;
  const message = `${url} responded with the status ${status} and without a body`;
  throw new BerthError({ code: 'unexpected_answer', message, status });
}
