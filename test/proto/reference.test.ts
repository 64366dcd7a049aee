/**
 * The documents for outside readers match the code: their generated tables are up to date, their example traces do what
 * the text says, and each link in a document of the project leads to a file and an anchor that exist.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { POWER_MODEL } from '../../proto/power/model.js';
import { findRule } from '../../proto/power/rules.js';
import { withGeneratedParts } from '../../proto/reference/generated-parts.js';
import { documentParts, generatedFiles } from '../../proto/reference/reference.js';
import { TraceCheck } from '../../proto/trace/check.js';
import { TraceReader } from '../../proto/trace/reader.js';
import { REASONS } from '../../proto/wire/reasons.js';
import { anchorsOf, followLink, linksOf } from '../helpers/house/document-links.js';
import { ourFiles, root } from '../helpers/house/our-files.js';

const read = (file: string): string => readFileSync(join(root, file), 'utf8').replaceAll('\r\n', '\n');

t.test('generated parts and files are up to date', async (t) => {
  for (const [file, parts] of Object.entries(documentParts(read('proto/lock.proto'))))
    t.equal(read(file), withGeneratedParts(read(file), parts), `${file}: npm run gen writes it`);
  for (const [file, text] of Object.entries(generatedFiles())) t.equal(read(file), text, `${file}: npm run gen`);
});

t.test('a part that the document lacks, or that nothing generates, is an error', async (t) => {
  const document = 'a\n<!-- generated: one -->\nold\n<!-- end of one -->\nb\n';
  t.equal(
    withGeneratedParts(document, { one: 'new' }),
    'a\n<!-- generated: one -->\n\nnew\n\n<!-- end of one -->\nb\n',
  );
  t.throws(() => withGeneratedParts(document, { one: 'new', two: '' }), /no part two/);
  t.throws(() => withGeneratedParts(document, {}), /a part one, which nothing generates/);
});

t.test('docs/protocol.md has every field of an uplink and every command of a downlink', async (t) => {
  const schema = read('proto/lock.proto');
  const document = read('docs/protocol.md');
  for (const message of ['Uplink', 'Downlink']) {
    const body = new RegExp(`^message ${message} \\{([\\s\\S]*?)^\\}`, 'm').exec(schema)?.[1] ?? '';
    const fields = [...body.matchAll(/^ {2,}(?:optional )?\w+ (\w+) = \d+;/gm)].map(([, field = '']) => field);
    t.ok(fields.length > 8, `${message}: ${fields.length} fields`);
    t.same(
      fields.filter((field) => !document.includes(`\`${field}\``)),
      [],
      message,
    );
  }
});

t.test('docs/protocol.md explains rules that exist', async (t) => {
  const section = /^### What exactly the rules mean\n([\s\S]*?)^### /m.exec(read('docs/protocol.md'))?.[1] ?? '';
  const explained = [...section.matchAll(/^- \*\*(.+?)\*\*/gm)].flatMap(([, names = '']) => names.split(', '));
  t.ok(explained.length > 20);
  t.same(
    explained.filter((name) => findRule(name) === undefined),
    [],
  );
});

t.test('docs/specification.md has the reasons that the program knows', async (t) => {
  const names = [...read('docs/specification.md').matchAll(/^\| (REASON_\w+|PHONE) \|/gm)].map(([, name]) => name);
  t.same(
    names,
    REASONS.map(({ name }) => name),
  );
});

/** The rules that a check finds broken in a trace, as `line rule`. */
function findingsIn(trace: string): string[] {
  const reader = new TraceReader();
  let check: TraceCheck | null = null;
  for (const line of trace.trimEnd().split('\n')) {
    const event = reader.read(line);
    if (!event.ok) throw new Error(`line ${event.error.line}: ${event.error.message}`);
    check ??= reader.header === null ? null : new TraceCheck(POWER_MODEL, reader.header);
    if (event.value !== null) check?.judge(event.value, reader.line);
  }
  return (check?.findings() ?? []).map(({ line, rule }) => `${line} ${rule}`);
}

t.test('the traces in docs/traces.md are read, and have the findings that the text names', async (t) => {
  const traces = [...read('docs/traces.md').matchAll(/^```jsonl\n([\s\S]*?)^```$/gm)].map(([, trace = '']) => trace);
  t.same(traces.map(findingsIn), [[], ['5 after-close']]);
});

t.test('the links of all documents lead somewhere', async (t) => {
  const documents = ourFiles().filter((file) => file.endsWith('.md'));
  t.ok(documents.length > 20);
  t.same(
    documents.flatMap((file) =>
      linksOf(file)
        .flatMap((link) => followLink(link) ?? [])
        .map((why) => `${file}: ${why}`),
    ),
    [],
  );
});

t.test('anchors are GitHub’s', async (t) => {
  const text = '# A lock’s Ping: `raw`\n\n```\n# no heading\n```\n\n## Twice\n\n## Twice\n\n<a id="rule-x"></a>\n';
  t.same([...anchorsOf(text)], ['a-locks-ping-raw', 'twice', 'twice-1', 'rule-x']);
});
