// Writes docs/webhook-payload.schema.json and docs/webhook-payload.d.ts from payload/schema.ts. Both are committed, so
// that merchants find them without a build; `--check` only checks that they match the schema. The script runs the
// compiled code, so run a build first.
import { readFileSync, writeFileSync } from 'node:fs';

const root = new URL('../../../', import.meta.url);
const compiled = new URL('dist/gateway/webhooks/payload/documents.js', root);
const { payloadSchemaText, payloadTypesText } = await import(compiled.href);

const documents = {
  'docs/webhook-payload.schema.json': payloadSchemaText(),
  'docs/webhook-payload.d.ts': payloadTypesText(),
};

for (const [path, text] of Object.entries(documents)) {
  const file = new URL(path, root);
  if (!process.argv.includes('--check')) writeFileSync(file, text);
  else if (readOrEmpty(file) !== text) {
    console.error(`${path} does not match payload/schema.ts. Run npm run gen and commit the result.`);
    process.exitCode = 1;
  }
}

function readOrEmpty(file) {
  try {
    return readFileSync(file, 'utf8').replaceAll('\r\n', '\n');
  } catch {
    return '';
  }
}
