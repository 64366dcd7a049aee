/** The pages of docs/reference, by file name. `npm run gen` writes them. Pure. */
import type { Command } from 'commander';
import { TAGS } from '../../../gateway/http/merchant/route.js';
import { HTTP_ROUTES } from '../../../gateway/http/merchant/routes.js';
import { DOCUMENTED_ROUTES } from '../../../gateway/http/operator/server.js';
import { METRICS } from '../../../gateway/metrics/table.js';
import { SETTINGS } from '../../../gateway/settings.js';
import { MERCHANT_EVENT_SCHEMAS } from '../../../gateway/webhooks/payload/merchant-event-schema.js';
import { PAYLOAD_SCHEMAS } from '../../../gateway/webhooks/payload/schema.js';
import { RULES } from '../../../proto/power/rules.js';
import { wrapWords } from '../../terminal/word-wrap.js';
import { commandsPage } from './commands.js';
import { ERROR_GROUPS } from './error-codes.js';
import { INPUT_CODES } from './input-codes.js';
import { merchantsPage, operatorsPage } from './operations.js';
import type { SchemaWords } from './schema-words.js';
import { errorsPage, metricsPage, payloadPage, rulesPage, settingsPage } from './tables.js';

/** As in every file of the project. */
const MAX_COLUMNS = 120;
const ORIGIN = '<!-- Written by cli/manual/generate.mjs from the tables of the program. -->';

/** The text of each page. `program` has all groups loaded. */
export function referencePages(program: Command): ReadonlyMap<string, string> {
  const bodies = [...PAYLOAD_SCHEMAS, ...MERCHANT_EVENT_SCHEMAS] as unknown as readonly SchemaWords[];
  const pages = {
    commands: commandsPage(program),
    settings: settingsPage(SETTINGS),
    metrics: metricsPage(METRICS),
    rules: rulesPage(RULES),
    errors: errorsPage([...ERROR_GROUPS, INPUT_CODES]),
    'operators-http': operatorsPage(DOCUMENTED_ROUTES),
    'merchants-http': merchantsPage(HTTP_ROUTES, TAGS),
    'webhook-payload': payloadPage(bodies),
  };
  return new Map(Object.entries(pages).map(([name, text]) => [`${name}.md`, `${ORIGIN}\n\n${wrapped(text)}\n`]));
}

/** The text with its paragraphs in lines of at most {@link MAX_COLUMNS}; tables and blocks of code stay as they are. */
function wrapped(text: string): string {
  let isCode = false;
  return text
    .split('\n')
    .flatMap((line) => {
      if (line.startsWith('```')) isCode = !isCode;
      return isCode || line.startsWith('|') ? [line] : wrapWords(line, MAX_COLUMNS);
    })
    .join('\n');
}
