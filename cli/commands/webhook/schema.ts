/** `lockgate webhook schema`: prints the schema of a webhook's body. */
import type { Command } from 'commander';

/** Adds the command to the group. */
export function addSchemaCommand(webhook: Command): void {
  webhook
    .command('schema')
    .description('Print the JSON Schema of a webhook’s body, or its TypeScript types.')
    .option('--types', 'Print TypeScript types instead of the schema.')
    .option('--json', 'Print JSON for programs; types are printed as {"types":…}.')
    .addHelpText('after', '\nExample:\n  $ lockgate webhook schema > webhook-payload.schema.json')
    .action(schema);
}

async function schema({ types, json }: { types?: boolean; json?: boolean }): Promise<void> {
  const { payloadSchemaText, payloadTypesText } = await import('../../../gateway/webhooks/payload/documents.js');
  if (!types) process.stdout.write(payloadSchemaText());
  else process.stdout.write(json ? `${JSON.stringify({ types: payloadTypesText() })}\n` : payloadTypesText());
}
