/**
 * The operations that a rental business uses, through clients that third-party generators make from the OpenAPI
 * document. Each function returns the body of a successful answer, and throws otherwise.
 */
import { openapiClient, swaggerClient } from '../../../clients/openapi-tools.js';
import { basicAuthorization } from '../merchant-call.js';

/** An operation of the OpenAPI document: openapi-fetch uses its path, swagger-client its tag and operation id. */
export interface Operation {
  readonly method: 'GET' | 'POST' | 'PATCH';
  readonly path: string;
  readonly tag: string;
  readonly id: string;
}

/** The input of a call, by where the document places each parameter. */
export interface CallInput {
  readonly path?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly header?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

/** Makes a call with a generated client. */
export type RentalClient = (operation: Operation, input?: CallInput) => Promise<unknown>;

/** A client made with openapi-fetch. */
export function fetchClient(baseUrl: string, key: string): RentalClient {
  const client = openapiClient({ baseUrl, headers: { authorization: basicAuthorization(key) } });
  return async ({ method, path }, { path: pathNames = {}, query = {}, header = {}, body } = {}) => {
    const params = { path: pathNames, query, header };
    const { data, error, response } = await client[method](path, { params, ...(body !== undefined && { body }) });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${JSON.stringify(error)}`);
    return data;
  };
}

/** A client made with swagger-client. */
export async function swaggerRentalClient(baseUrl: string, key: string): Promise<RentalClient> {
  const client = await swaggerClient(`${baseUrl}/openapi.json`, {
    requestInterceptor: (request: { headers: Record<string, string> }) => {
      request.headers.authorization = basicAuthorization(key);
      return request;
    },
  });
  return async ({ tag, id }, { path = {}, query = {}, header = {}, body } = {}) => {
    const call = client.apis[tag]?.[id];
    if (call === undefined) throw new Error(`the client has no operation ${tag}.${id}`);
    // swagger-client takes all parameters in one object, with the names of headers in lower case.
    const headers = Object.fromEntries(Object.entries(header).map(([name, text]) => [name.toLowerCase(), text]));
    const options = body === undefined ? {} : { requestBody: body };
    return (await call({ ...path, ...query, ...headers }, options)).body;
  };
}
