/**
 * Findings, `why` and certificates cite sections of the documents, such as "protocol.md §2". Every section that they
 * cite, and every rule, has a link that leads to an anchor in the document.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { CITATION_LINKS, citationLink, citationsOf, ruleLink } from '../../proto/citations.js';
import { POWER_MODEL } from '../../proto/power/model.js';
import { RULES } from '../../proto/power/rules.js';
import { certificateRows } from '../../proto/trace/certificate/rows.js';
import { RULE_WHY } from '../../proto/why/rules.js';
import { SECTIONS } from '../../proto/why/step.js';
import { stepToJson } from '../../proto/why/step-json.js';
import { followLink } from '../helpers/house/document-links.js';
import { ourFiles, root } from '../helpers/house/our-files.js';

/** The numbers of a page's sections. */
function sectionNumbersOf(page: string): Set<string> {
  const cachedNumbers = numbersOfPage.get(page);
  if (cachedNumbers !== undefined) return cachedNumbers;
  const text = readFileSync(join(root, 'docs', `${page}.md`), 'utf8');
  const numbers = new Set([...text.matchAll(/^## (\d)\. /gm)].map(([, number = '']) => number));
  numbersOfPage.set(page, numbers);
  return numbers;
}

const numbersOfPage = new Map<string, Set<string>>();

/** A message for each link that leads nowhere. */
function brokenLinkMessages(links: readonly string[]): string[] {
  return links.flatMap((link) => followLink(link) ?? []);
}

t.test('every link of the table leads to an anchor', async (t) => {
  t.ok(CITATION_LINKS.length > 10);
  t.same(brokenLinkMessages(CITATION_LINKS), []);
  t.equal(
    followLink('docs/protocol.md#5-nothing'),
    'docs/protocol.md#5-nothing: docs/protocol.md has no anchor 5-nothing',
  );
  t.match(followLink('docs/nothing.md#x'), /there is no docs\/nothing\.md/);
});

t.test('every section that the code cites has a link', async (t) => {
  const sections = [
    ...Object.values(SECTIONS),
    ...RULES.map(({ section }) => section),
    ...Object.values(RULE_WHY).map(({ restsOn }) => restsOn),
    ...certificateRows(POWER_MODEL).map(({ section }) => section),
  ];
  const cited = sections.flatMap((section) => citationsOf(section));
  t.same(brokenLinkMessages(cited.map(({ link }) => link)), []);
  const links = new Set(cited.map(({ link }) => link));
  t.same(
    CITATION_LINKS.filter((link) => !links.has(link)),
    [],
    'every link of the table is used',
  );
});

t.test('every rule has a row in docs/protocol.md', async (t) => {
  t.same(brokenLinkMessages(RULES.map(({ rule }) => ruleLink(rule))), []);
});

t.test('every section that the code or a document cites by its number exists', async (t) => {
  const cited = /\b(protocol|interfaces)\.md §(\d)/g;
  const missing = new Set<string>();
  let count = 0;
  for (const file of ourFiles().filter(
    (name) => /\.(ts|mjs|proto|md)$/.test(name) && !name.includes('citations.test'),
  )) {
    for (const [text, page = '', number = ''] of readFileSync(join(root, file), 'utf8').matchAll(cited)) {
      count += 1;
      if (!sectionNumbersOf(page).has(number)) missing.add(`${file}: ${text}`);
    }
  }
  t.ok(count > 500, `${count} citations`);
  t.same([...missing], []);
});

t.test('a text may cite several sections; a citation without a link is an error', async (t) => {
  t.same(citationsOf('Specification, Limits; protocol.md §2'), [
    { text: 'Specification, Limits', link: 'docs/specification.md#limits' },
    { text: 'protocol.md §2', link: 'docs/protocol.md#2-the-power-model' },
  ]);
  t.throws(() => citationLink('protocol.md §9'), /no link for the citation "protocol\.md §9"/);
});

t.test('a step about a rule leads to the rule, any other step to its section', async (t) => {
  const step = { kind: 'rule-broken', sentence: '', atMs: null, clock: 'run', restsOn: SECTIONS.judge } as const;
  t.equal(stepToJson({ ...step, code: 'after-close' }).link, 'docs/protocol.md#rule-after-close');
  t.equal(stepToJson({ ...step, code: 'late-period' }).link, 'docs/protocol.md#3-the-rules');
});
