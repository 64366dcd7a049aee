/** The reference of settings, metrics, rules, error codes and webhook bodies, from their tables. Pure. */
import type { MetricRow } from '../../../gateway/metrics/table.js';
import type { Setting } from '../../../gateway/settings.js';
import { citationsOf } from '../../../proto/citations.js';
import type { RuleRow } from '../../../proto/power/rules.js';
import { markdownTable } from '../../../proto/reference/generated-parts.js';
import { RULE_WHY } from '../../../proto/why/rules.js';
import type { ErrorGroup } from './error-codes.js';
import { memberRows, type SchemaWords } from './schema-words.js';

/** The page of settings. */
export function settingsPage(settings: readonly Setting[]): string {
  const parts = settings.map((each) => {
    const defaultText = each.default === '' ? 'empty' : `\`${each.default}\``;
    const inFile = each.flag.slice(2).replaceAll('-', '_');
    const rows = [[`\`${each.flag}\``, `\`${each.environment}\``, `\`${inFile}\``, each.unit, defaultText]];
    const table = markdownTable(['flag', 'environment', 'in the settings file', 'unit', 'default'], rows);
    return `## ${each.flag.slice(2)}\n\n${each.meaning}\n\n${table}`;
  });
  return [
    '# Settings',
    'Every setting of `lockgate serve`. A flag overrides the environment variable, which overrides the settings ' +
      'file (`--config`). `lockgate config show` prints the values in force and where each comes from. A wrong value ' +
      'stops the start with one sentence.',
    ...parts,
  ].join('\n\n');
}

/** The page of metrics. */
export function metricsPage(metrics: readonly MetricRow[]): string {
  const parts = metrics.map(({ name, type, labels, help, buckets }) => {
    const labelText = labels.length === 0 ? 'No labels.' : `Labels: ${labels.map((each) => `\`${each}\``).join(', ')}.`;
    const bucketText = buckets === undefined ? '' : ` Upper bounds: ${buckets.join(', ')}.`;
    return `## ${name}\n\n${help}\n\n${type}. ${labelText}${bucketText}`;
  });
  return [
    '# Metrics',
    'What `GET /metrics` on the operators’ port serves, in Prometheus’ text format, to a token with the role ' +
      '`metrics`. A label has few values, known in advance or assigned by lockgate.',
    ...parts,
  ].join('\n\n');
}

/** The page of the judge's rules. */
export function rulesPage(rules: readonly RuleRow[]): string {
  const parts = rules.map(({ rule, severity, brokenWhen, restsOn }) => {
    const { because, restsOn: section } = RULE_WHY[rule];
    const sources = citationsOf(section).map(({ text, link }) => `[${text}](../${link.replace(/^docs\//, '')})`);
    return [
      `## ${rule}`,
      `A ${severity}. Broken when: ${brokenWhen}`,
      `Why: ${because} (${sources.join('; ')})`,
      `Rests on: ${restsOn}. [Where the table has it](../protocol.md#rule-${rule})`,
    ].join('\n\n');
  });
  return [
    '# Rules',
    'The rules by which the judge checks what a lock sends. A *violation* is something that a lock must not do; ' +
      'a *warning* may also be caused by the network. What a rule rests on says what may change its findings: ' +
      'the content of uplinks, the receipt of them, time passing, or what truly happened in the world. ' +
      '[What exactly the rules mean](../protocol.md#what-exactly-the-rules-mean) has the conditions.',
    ...parts,
  ].join('\n\n');
}

/** The page of error codes. */
export function errorsPage(groups: readonly ErrorGroup[]): string {
  const parts = groups.map(({ title, about, codes }) => {
    const rows = codes.map(([code, meaning]) => [`<a id="${code}"></a>\`${code}\``, meaning]);
    return `## ${title}\n\n${about}\n\n${markdownTable(['code', 'meaning'], rows)}`;
  });
  return [
    '# Error codes',
    'Each error has a code for programs and a sentence for people. Over HTTP it is a problem document (RFC 9457) ' +
      'with the member `code`; the command line prints the sentence and ends with an exit code. Codes don’t change ' +
      'between versions.',
    ...parts,
  ].join('\n\n');
}

/** The page of the bodies of webhooks. */
export function payloadPage(bodies: readonly SchemaWords[]): string {
  const parts = bodies.map((body) => {
    const table = markdownTable(['member', 'value', 'required', 'meaning'], memberRows(body));
    return `## ${body.title}\n\n${body.description}\n\n${table}`;
  });
  return [
    '# Webhook bodies',
    'The members of each kind of body. `ping_type` tells the kinds of pings apart, and `type` the other events. ' +
      'Ignore members that you don’t know: later versions may add some. [Webhooks](../webhooks.md) has an example of ' +
      'each, and there is a [JSON Schema](../webhook-payload.schema.json) and a file of ' +
      '[TypeScript types](../webhook-payload.d.ts).',
    ...parts,
  ].join('\n\n');
}
