/**
 * Every citation that a command prints as JSON or HTML is a link, and the link leads to an anchor in docs/. Text output
 * has the short citation only. GET /why is in test/gateway/why/why.test.ts.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { RULES } from '../../proto/power/rules.js';
import { runCommand } from '../helpers/cli/command-line.js';
import { followLink } from '../helpers/house/document-links.js';
import { root } from '../helpers/house/our-files.js';
import { tempFolder } from '../helpers/store/temp-folder.js';

const TRACE = join(root, 'test/traces/after-close.breaks-1.jsonl');

async function output(args: readonly string[]): Promise<string> {
  const { stdout, stderr } = await runCommand(args);
  if (stdout === '') throw new Error(`${args.join(' ')} printed nothing: ${stderr}`);
  return stdout;
}

async function json<T>(args: readonly string[]): Promise<T> {
  return JSON.parse(await output([...args, '--json'])) as T;
}

/** The links of a page to other pages. */
function hrefsOf(html: string): string[] {
  return [...html.matchAll(/ href="([^"]+)"/g)].map(([, href = '']) => href);
}

/** A message for each link that leads nowhere. */
function brokenLinkMessages(links: readonly string[]): string[] {
  return links.flatMap((link) => followLink(link) ?? []);
}

/** A rule in JSON output, with the section that it cites and the link to it. */
interface CitedRule {
  readonly rule: string;
  readonly section: string;
  readonly link: string;
}

t.test('findings of trace check link to their rules, in JSON and in HTML', async (t) => {
  const { files } = await json<{ files: { findings: CitedRule[] }[] }>(['trace', 'check', TRACE]);
  const findings = files.flatMap((file) => file.findings);
  t.match(findings, [{ rule: 'after-close', section: 'protocol.md §3', link: 'docs/protocol.md#rule-after-close' }]);
  t.same(brokenLinkMessages(findings.map(({ link }) => link)), []);
  const html = await output(['trace', 'check', TRACE, '--format', 'html']);
  const hrefs = hrefsOf(html);
  t.ok(hrefs.length >= 2, 'in the summary and in the table of findings');
  t.same(brokenLinkMessages(hrefs), []);
  t.notMatch(await output(['trace', 'check', TRACE]), /docs\//, 'text has no links');
});

t.test('rows of a certificate link to their sections, in JSON and in HTML', async (t) => {
  const { rows } = await json<{ rows: { section: string; links: string[] }[] }>(['trace', 'certify', TRACE]);
  t.ok(rows.length > 80);
  for (const { section, links } of rows) t.equal(links.length, section.split('; ').length, section);
  t.same(brokenLinkMessages(rows.flatMap(({ links }) => links)), []);
  const page = join(tempFolder(t), 'cert.html');
  await runCommand(['trace', 'certify', TRACE, '--out', page]);
  const hrefs = hrefsOf(readFileSync(page, 'utf8'));
  t.ok(hrefs.length > 80, `${hrefs.length} links`);
  t.same(brokenLinkMessages(hrefs), []);
});

t.test('steps and findings of trace why link to their rules and sections', async (t) => {
  const line = JSON.parse(
    readFileSync(join(root, 'test/traces/expected.jsonl'), 'utf8').match(/^.*after-close\.breaks-1.*$/m)?.[0] ?? '',
  ).line;
  interface Why {
    readonly findings: readonly CitedRule[];
    readonly steps: readonly { readonly rests_on: string; readonly link: string }[];
  }
  const { steps, findings } = await json<Why>(['trace', 'why', `${TRACE}:${line}`]);
  t.equal(steps[0]?.link, 'docs/protocol.md#rule-after-close');
  t.equal(findings[0]?.link, 'docs/protocol.md#rule-after-close');
  t.ok(steps.length > 3);
  t.same(brokenLinkMessages(steps.map(({ link }) => link)), []);
  t.notMatch(await output(['trace', 'why', `${TRACE}:${line}`]), /docs\//, 'text has no links');
});

t.test('rules of model show link to the documents', async (t) => {
  const { rules } = await json<{ rules: CitedRule[] }>(['model', 'show', '--rules']);
  t.equal(rules.length, RULES.length);
  t.same(brokenLinkMessages(rules.map(({ link }) => link)), []);
});
