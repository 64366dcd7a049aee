// Writes docs/webhook-payload.schema.json, docs/webhook-payload.d.ts and the table of members in docs/webhooks.md from
// payload/schema.ts, and docs/notification.schema.json from gateway/notify/schema.ts. They are committed, so that
// readers find them without a build; `--check` only checks that they match the schemas. The script runs the compiled
// code, so run a build first.
import { readFileSync, writeFileSync } from 'node:fs';

const root = new URL('../../../', import.meta.url);
const compiled = (name) => import(new URL(`dist/${name}.js`, root).href);
const { payloadSchemaText, payloadTypesText } = await compiled('gateway/webhooks/payload/documents');
const { memberTable } = await compiled('gateway/webhooks/payload/member-table');
const { markdownTable, withGeneratedParts } = await compiled('proto/reference/generated-parts');
const { notificationSchemaText } = await compiled('gateway/notify/schema');
const { head, rows } = memberTable();

const documents = {
  'docs/webhook-payload.schema.json': payloadSchemaText(),
  'docs/webhook-payload.d.ts': payloadTypesText(),
  'docs/notification.schema.json': notificationSchemaText(),
  'docs/webhooks.md': withGeneratedParts(readOrEmpty(new URL('docs/webhooks.md', root)), {
    members: markdownTable(head, rows),
  }),
};

for (const [path, text] of Object.entries(documents)) {
  const file = new URL(path, root);
  if (!process.argv.includes('--check')) writeFileSync(file, text);
  else if (readOrEmpty(file) !== text) {
    console.error(`${path} does not match its schema.ts. Run npm run gen and commit the result.`);
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
