// Writes scenarios/scenario.schema.json, the schema of scenario files for editors, from schema.ts. It is committed, so
// that readers find it without a build; `--check` only checks that it matches. The script runs the compiled code, so
// run a build first.
import { readFileSync, writeFileSync } from 'node:fs';

const { scenarioJsonSchema } = await import(
  new URL('../../dist/firmware-sim/scenario/schema.js', import.meta.url).href
);
const file = new URL('../scenarios/scenario.schema.json', import.meta.url);
const text = `${JSON.stringify(scenarioJsonSchema(), null, 2)}\n`;
if (!process.argv.includes('--check')) writeFileSync(file, text);
else if (readFileSync(file, 'utf8').replaceAll('\r\n', '\n') !== text) {
  console.error('firmware-sim/scenarios/scenario.schema.json does not match schema.ts. Run npm run gen and commit it.');
  process.exitCode = 1;
}
