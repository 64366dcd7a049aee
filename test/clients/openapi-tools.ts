/** Loads third-party tools for OpenAPI documents: a validator, a proxy that checks answers, and a Petstore client. */
import { pathToFileURL } from 'node:url';
import { clientPath, loadClient } from './client-package.js';

interface ValidatorPackage {
  readonly Validator: new () => { validate(document: object): Promise<{ readonly valid: boolean }> };
}

const validatorUrl = pathToFileURL(clientPath('@seriousme/openapi-schema-validator')).href;

/** Validates documents of OpenAPI 2 and 3. `validate` may change the document that it is given. */
export const { Validator } = (await import(validatorUrl)) as ValidatorPackage;

/** The path of Prism, a proxy that checks each answer of a server against an OpenAPI document. */
export function prismProgram(): string {
  return clientPath('@stoplight/prism-cli/dist/index.js');
}

/** The client that swagger-client makes from a document: a function for each operation, by tag and operation id. */
export interface SwaggerClient {
  readonly apis: Readonly<
    Record<
      string,
      Readonly<Record<string, (input: object) => Promise<{ status: number; text: string; body: unknown }>>>
    >
  >;
}

/** A client made from the public Petstore document, for a server at `host`, with options of swagger-client. */
export function petstoreClient(host: string, options: object): Promise<SwaggerClient> {
  const makeClient = loadClient<(options: object) => Promise<SwaggerClient>>('swagger-client');
  const petstore = loadClient<Record<string, unknown>>('@readme/oas-examples/2.0/json/petstore.json');
  return makeClient({ spec: { ...petstore, host }, ...options });
}
