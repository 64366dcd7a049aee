/** Loads third-party tools for OpenAPI documents: a validator, a proxy that checks answers, and makers of clients. */
import { pathToFileURL } from 'node:url';
import { clientPath, loadClient } from './client-package.js';

interface ValidatorPackage {
  readonly Validator: new () => { validate(document: object): Promise<{ readonly valid: boolean }> };
}

const validatorUrl = pathToFileURL(clientPath('@seriousme/openapi-schema-validator')).href;

/** Validates a document of OpenAPI 2 or 3. */
export async function validateOpenapi(document: object): Promise<{ readonly valid: boolean }> {
  const { Validator } = (await import(validatorUrl)) as ValidatorPackage;
  // The validator may change the document that it is given.
  return await new Validator().validate(structuredClone(document));
}

/** The path of Prism, a proxy that checks each answer of a server against an OpenAPI document. */
export function prismProgram(): string {
  return clientPath('@stoplight/prism-cli/dist/index.js');
}

/** The client that swagger-client makes from a document: a function for each operation, by tag and operation id. */
export interface SwaggerClient {
  readonly apis: Readonly<
    Record<
      string,
      Readonly<
        Record<string, (input: object, options?: object) => Promise<{ status: number; text: string; body: unknown }>>
      >
    >
  >;
}

/** A client that swagger-client makes from the document at a URL. */
export function swaggerClient(url: string, options: object): Promise<SwaggerClient> {
  return loadClient<(options: object) => Promise<SwaggerClient>>('swagger-client')({ url, ...options });
}

/** A client of openapi-fetch: a function for each method, which takes a path of the document. */
export type OpenapiClient = Readonly<
  Record<
    'GET' | 'POST' | 'PATCH',
    (path: string, input: object) => Promise<{ data?: unknown; error?: unknown; response: Response }>
  >
>;

/** A client of openapi-fetch. */
export function openapiClient(options: { readonly baseUrl: string; readonly headers: object }): OpenapiClient {
  const { default: makeClient } = loadClient<{ default: (options: object) => OpenapiClient }>('openapi-fetch');
  return makeClient(options);
}

/** The TypeScript types that openapi-typescript makes from a document, as text. */
export async function openapiTypes(document: object): Promise<string> {
  const { default: makeTypes, astToString } = loadClient<{
    readonly default: (document: object) => Promise<unknown>;
    readonly astToString: (nodes: unknown) => string;
  }>('openapi-typescript');
  return astToString(await makeTypes(document));
}

/** A client made from the public Petstore document, for a server at `host`, with options of swagger-client. */
export function petstoreClient(host: string, options: object): Promise<SwaggerClient> {
  const makeClient = loadClient<(options: object) => Promise<SwaggerClient>>('swagger-client');
  const petstore = loadClient<Record<string, unknown>>('@readme/oas-examples/2.0/json/petstore.json');
  return makeClient({ spec: { ...petstore, host }, ...options });
}
