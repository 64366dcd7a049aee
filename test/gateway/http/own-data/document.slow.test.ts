/**
 * The documentation of the operations on a merchant's own data: each documented status is answered, each answer and
 * each documented example fits its schema, and docs/http.md has a section with an example that runs (interfaces.md §2).
 */
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { Compile } from 'typebox/compile';
import { commonResponses } from '../../../../gateway/http/merchant/own-data/own-data-route.js';
import { OWN_DATA_ROUTES } from '../../../../gateway/http/merchant/own-data/routes.js';
import type { MerchantRoute } from '../../../../gateway/http/merchant/route.js';
import { runProgram } from '../../../helpers/cli/program.js';
import { root } from '../../../helpers/house/our-files.js';
import { callMerchantApi, type MerchantAnswer } from '../../../helpers/http/merchant-call.js';
import { OWN_DATA_CALLS } from '../../../helpers/http/own-data/calls.js';
import { ownDataSite } from '../../../helpers/http/own-data/site.js';
import { tempFolder } from '../../../helpers/store/temp-folder.js';

/** The part of the OpenAPI document that has the types of answers. */
interface OpenApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, OpenApiOperation>>>>;
}

interface OpenApiOperation {
  readonly responses: Readonly<Record<string, { readonly content?: Readonly<Record<string, OpenApiMedia>> }>>;
}

interface OpenApiMedia {
  readonly schema: { readonly type?: string };
}

/** The documented statuses of a route, without those that all routes of merchants' own data have. */
function statusesOf({ responses, keyScope }: MerchantRoute): number[] {
  const common = Object.keys(commonResponses(keyScope));
  return Object.keys(responses)
    .filter((status) => !common.includes(status))
    .map(Number);
}

/** How an answer differs from its documentation; undefined if it does not. */
function differenceOf({ responses }: MerchantRoute, { status, headers, body }: MerchantAnswer): unknown {
  const documented = responses[status];
  if (documented === undefined) return `${status} is not documented`;
  const type = String(headers['content-type']).split(';')[0] ?? '';
  if (Object.keys(documented.otherTypes ?? {}).includes(type)) return undefined;
  const { isProblem, jsonType = isProblem ? 'application/problem+json' : 'application/json' } = documented;
  if (type !== jsonType) return `the type is ${type}`;
  const schema = Compile(documented.schema ?? {});
  return schema.Check(body) ? undefined : schema.Errors(body);
}

t.test('each documented status is answered, by an answer that fits its schema', async (t) => {
  const { gateway, amber } = await ownDataSite(t);
  for (const route of OWN_DATA_ROUTES) {
    const { method, path } = route;
    const calls = OWN_DATA_CALLS[`${method} ${path}`];
    /** For each status a function that returns the path, body and headers of a call that is answered with it. */
    const callsByStatus = { ...calls?.otherStatuses, ...(calls && { [calls.status]: calls.callFor }) };
    const expected = statusesOf(route).map(String);
    t.strictSame(Object.keys(callsByStatus).sort(), expected.sort(), `${method} ${path}: a call for each status`);
    for (const [status, makeCall] of Object.entries(callsByStatus)) {
      const [calledPath, call] = makeCall(amber);
      const answer = await callMerchantApi(gateway, calledPath, { method, key: amber.key, ...call });
      t.equal(String(answer.status), status, `${method} ${calledPath}: ${answer.text.slice(0, 300)}`);
      t.equal(differenceOf(route, answer), undefined, `${method} ${calledPath} fits`);
    }
  }
});

t.test('the document gives each answer’s content type a schema, or says that it is a text', async (t) => {
  const { gateway, amber } = await ownDataSite(t);
  const { paths } = (await callMerchantApi(gateway, '/openapi.json')).body as OpenApiDocument;
  for (const { method, path, responses } of OWN_DATA_ROUTES) {
    const row = OWN_DATA_CALLS[`${method} ${path}`];
    const [calledPath, call] = row?.callFor(amber) ?? [''];
    const { status, headers } = await callMerchantApi(gateway, calledPath, { method, key: amber.key, ...call });
    const type = String(headers['content-type']).split(';')[0] ?? '';
    const media = paths[path]?.[method.toLowerCase()]?.responses[status]?.content?.[type];
    const isText = Object.keys(responses[status]?.otherTypes ?? {}).includes(type);
    t.ok(media, `${method} ${path} ${status}: ${type} is documented`);
    t.equal(media?.schema.type === 'string', isText, `${method} ${path} ${status}: ${type} is JSON, or a text`);
  }
});

t.test('each example of the OpenAPI document fits its schema', async (t) => {
  for (const { method, path, responses, body, bodyExample } of OWN_DATA_ROUTES) {
    const examples = Object.entries(responses).filter(([status]) => Number(status) < 300);
    for (const [status, { schema, example }] of examples)
      if (schema !== undefined)
        t.strictSame(Compile(schema).Errors(example), [], `${method} ${path} ${status} has an example that fits`);
    if (body !== undefined)
      t.strictSame(Compile(body).Errors(bodyExample), [], `${method} ${path}: the body’s example`);
  }
});

const [, page = ''] = readFileSync(join(root, 'docs/http.md'), 'utf8').split('## The merchant’s own data\n');

/** The sections of the chapter about the merchant's own data, by their headings. */
const SECTIONS = new Map(
  page
    .split(/^### /m)
    .slice(1)
    .map((section) => [section.slice(0, section.indexOf('\n')), section] as const),
);

t.test('docs/http.md has a section for each operation, with its scope and its statuses', async (t) => {
  const documented = [...SECTIONS.keys()].filter((heading) => /^[A-Z]+ \//.test(heading));
  t.strictSame(documented.sort(), OWN_DATA_ROUTES.map(({ method, path }) => `${method} ${path}`).sort());
  for (const route of OWN_DATA_ROUTES) {
    const section = SECTIONS.get(`${route.method} ${route.path}`) ?? '';
    t.ok(section.includes(`Scope: \`${route.keyScope}\`.`), `${route.method} ${route.path}: its scope`);
    const rows = [...section.matchAll(/^\| (\d+) \| (.+) \|$/gm)].map(([, status, when]) => [status, when]);
    const expected = statusesOf(route).map((status) => [String(status), route.responses[status]?.description]);
    t.strictSame(rows, expected, `${route.method} ${route.path}: its statuses`);
  }
});

const NO_CURL = spawnSync('curl', ['--version']).error === undefined ? false : 'curl is not installed';

t.test('the examples of docs/http.md run', { skip: NO_CURL }, async (t) => {
  const { gateway, amber } = await ownDataSite(t);
  const folder = tempFolder(t);
  // curl prints the status last, on a separate line.
  writeFileSync(join(folder, '.curlrc'), 'silent\nshow-error\nwrite-out = "\\n%{http_code}\\n"\n');
  for (const route of OWN_DATA_ROUTES) {
    const name = `${route.method} ${route.path}`;
    // A block of `sh`, and its output in a block of `json` if shown.
    const [, script = '', shown = 'null'] =
      /^```sh\n([^`]+)\n```\n(?:\n```json\n([^`]+)\n```\n)?/m.exec(SECTIONS.get(name) ?? '') ?? [];
    const names = { MAC: amber.mac, COMMAND: String(amber.queuedCommand), EVENT: amber.event };
    const env = { ...names, BASE: `http://127.0.0.1:${gateway.httpPort}`, KEY: amber.key, CURL_HOME: folder };
    const { stdout } = await runProgram(t, 'bash', ['-c', script], env);
    // An object's numeric keys ascend, so the status of success comes first.
    const success = Number(Object.keys(route.responses)[0]);
    t.equal(stdout.at(-1), String(success), `${name}: ${script} ${stdout.join('\n')}`);
    const schema = route.responses[success]?.schema;
    if (shown !== 'null' && schema !== undefined)
      t.strictSame(Compile(schema).Errors(JSON.parse(shown)), [], `${name}: the shown answer fits the schema`);
  }
});
