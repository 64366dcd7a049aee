// Writes scenarios/scenario.schema.json, the schema of scenario files for editors, from schema.ts. It is committed, so
// that readers find it without a build; a test compares it with the reader's schema. The script runs the compiled code,
// so run a build first.
import { writeFileSync } from 'node:fs';

const { scenarioJsonSchema } = await import(
  new URL('../../dist/firmware-sim/scenario/schema.js', import.meta.url).href
);
const file = new URL('../scenarios/scenario.schema.json', import.meta.url);
writeFileSync(file, `${JSON.stringify(scenarioJsonSchema(), null, 2)}\n`);
