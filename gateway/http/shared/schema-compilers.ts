/**
 * Sets what Fastify does with the schemas of routes. Fastify validates no requests, since lockgate's own code does
 * (merchant/check-value.ts, operator/check-request.ts). The serializer of an answer is compiled at the first answer
 * that needs it, which keeps the start of the gateway fast.
 */
import serializerSelector from '@fastify/fast-json-stringify-compiler';
import type { FastifyServerOptions } from 'fastify';

type SchemaController = NonNullable<FastifyServerOptions['schemaController']>;
type Factories = Required<NonNullable<SchemaController['compilersFactory']>>;

const buildSerializer: Factories['buildSerializer'] = (sharedSchemas, options) => {
  const compile = serializerSelector()(sharedSchemas, options);
  return (route) => {
    let serialize: ReturnType<typeof compile> | undefined;
    return (answer) => {
      serialize ??= compile(route);
      return serialize(answer);
    };
  };
};

/** Accepts every request. Fastify's type requires the members of a validator of Ajv, which Fastify does not use. */
const buildValidator = (() => () => () => true) as unknown as Factories['buildValidator'];

/** Fastify's setting `schemaController`. */
export const SCHEMA_COMPILERS: SchemaController = { compilersFactory: { buildSerializer, buildValidator } };
