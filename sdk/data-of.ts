// Gets the body from the result of an openapi-fetch call, which also contains the response.

/** Returns the body: `await dataOf(berth.GET(...))`. If the request fails, the client throws first. */
export async function dataOf<Data>(
  pendingResult: Promise<{ data?: Data | undefined; response: Response }>,
): Promise<Data> {
  const { data, response } = await pendingResult;
  if (data === undefined)
    throw new Error(`${response.url} responded with the status ${response.status} and without a body`);
  return data;
}
