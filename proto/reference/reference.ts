/**
 * The documents in docs/ that have generated parts, and the files there that are generated as a whole. `npm run gen`
 * writes them with generate.mjs; test/proto/reference.test.ts checks that they are up to date. Pure.
 */
import { traceSchemaText } from '../trace/schema/trace-schema.js';
import { certificateParts } from './certificate-tables.js';
import { firmwareParts } from './firmware-tables.js';
import type { GeneratedParts } from './generated-parts.js';
import { protocolParts } from './protocol-tables.js';
import { traceParts } from './trace-tables.js';

/**
 * The generated parts of each document, by its path from the project's folder.
 *
 * @param lockSchema the text of lock.proto
 */
export function documentParts(lockSchema: string): Readonly<Record<string, GeneratedParts>> {
  return {
    'docs/certificate.md': certificateParts(),
    'docs/firmware.md': firmwareParts(lockSchema),
    'docs/protocol.md': protocolParts(),
    'docs/traces.md': traceParts(),
  };
}

/** The text of each generated file, by its path from the project's folder. */
export function generatedFiles(): Readonly<Record<string, string>> {
  return { 'docs/trace.schema.json': traceSchemaText() };
}
