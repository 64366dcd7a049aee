/** Tools of others for OpenAPI documents: a validator, a proxy that checks answers, and a client of the Petstore. */
import { pathToFileURL } from 'node:url';
import { clientPath, loadClient } from './client-package.js';

interface ValidatorPackage {
  readonly Validator: new () => { validate(document: object): Promise<{ readonly valid: boolean }> };
}

const validatorUrl = pathToFileURL(clientPath('@seriousme/openapi-schema-validator')).href;

/** Validates documents of OpenAPI 2 and 3. `validate` may change the document that it is given. */
export const { Validator } = (await import(validatorUrl)) as ValidatorPackage;

/** The path of Prism's program, which is a proxy before a server that holds each answer against a document. */
export function prismProgram(): string {
  return clientPath('@stoplight/prism-cli/dist/index.js');
}

/** What swagger-client makes of a document: a function for each operation, by tag and operation id. */
export interface SwaggerClient {
  readonly apis: Readonly<
    Record<
      string,
      Readonly<Record<string, (input: object) => Promise<{ status: number; text: string; body: unknown }>>>
    >
  >;
}

/** A client of the public Petstore document, with the options of swagger-client; `host` is where the server is. */
export function petstoreClient(host: string, options: object): Promise<SwaggerClient> {
  const makeClient = loadClient<(options: object) => Promise<SwaggerClient>>('swagger-client');
  const petstore = loadClient<Record<string, unknown>>('@readme/oas-examples/2.0/json/petstore.json');
  return makeClient({ spec: { ...petstore, host }, ...options });
}
