/** Lets Prometheus' own tool say which alerts of deploy/monitoring fire on given values, or on what gateways serve. */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import got from 'got';
import type { Test } from 'tap';
import type { Gateway } from '../../../gateway/gateway.js';
import { root } from '../house/our-files.js';
import { tempFolder } from '../store/temp-folder.js';

export const ALERTS_FILE = path.join(root, 'deploy/monitoring/alerts.yaml');
const isToolMissing = spawnSync('promtool', ['--version']).error !== undefined;
/** The options of a test that needs promtool. */
export const needsTool = { skip: isToolMissing && 'promtool is not installed (Debian: prometheus)' };

/** Series and their values, one a minute, in promtool’s notation: `1+0x10` is 1 and ten more of it. */
export type Series = Readonly<Record<string, string>>;

/** Series, and the alerts that must fire on them within 100 minutes, in alphabetical order. */
export interface AlertCase {
  readonly name: string;
  readonly series: Series;
  readonly fired: readonly string[];
}

/** What a gateway serves: series and their values. */
export type Values = ReadonlyMap<string, string>;

/** A series with the label that Prometheus adds for each gateway. */
function withInstance(series: string, instance: string): string {
  const [name, labels = ''] = series.split(/[{}]/);
  return `${name}{${[labels, `instance="${instance}"`].filter(Boolean).join(',')}}`;
}

/**
 * Lets promtool check which alerts fire. Since promtool takes a tenth of a second for each test, all cases are one
 * test: each case is a gateway, and one Prometheus watches them all. The alerts of one gateway must not depend on
 * another's.
 */
export function checkFired(test: Test, cases: readonly AlertCase[]): void {
  const file = path.join(tempFolder(test), 'case.yaml');
  const expr = 'group by (alertname, instance) (count_over_time(ALERTS{alertstate="firing"}[100m]))';
  const samples = cases.flatMap(({ name, fired }) =>
    fired.map((alertname) => ({ labels: `{alertname="${alertname}",instance="${name}"}`, value: 1 })),
  );
  const input = cases.flatMap(({ name, series }) =>
    Object.entries(series).map(([each, values]) => ({ series: withInstance(each, name), values })),
  );
  const query = { expr, eval_time: '100m', exp_samples: samples };
  const tests = [{ interval: '1m', input_series: input, promql_expr_test: [query] }];
  writeFileSync(file, JSON.stringify({ rule_files: [ALERTS_FILE], evaluation_interval: '1m', tests }));
  const { status, stdout, stderr } = spawnSync('promtool', ['test', 'rules', file], { encoding: 'utf8' });
  test.equal(status, 0, `${stdout}${stderr}`);
}

/** The series that a gateway serves, and their values. @throws RequestError if it does not answer */
export async function scrape(gateway: Pick<Gateway, 'operatorPort' | 'operatorToken'>): Promise<Values> {
  const headers = { authorization: `Bearer ${gateway.operatorToken}` };
  const text = await got(`http://127.0.0.1:${gateway.operatorPort}/metrics`, { headers }).text();
  const lines = text.split('\n').flatMap((line) => /^(?!#)(.+) (\S+)$/.exec(line)?.slice(1, 3) ?? []);
  return new Map(lines.flatMap((each, index) => (index % 2 === 0 ? [[each, lines[index + 1] ?? '']] : [])));
}

/**
 * The series of a gateway that has served `before` for ten minutes and `after` from then on. Those whose name `growing`
 * matches grow by the same difference again each minute: their trouble goes on.
 */
export function seriesOf(before: Values, after: Values, growing = /^$/): Series {
  const entries = [...after].map(([series, value]) => {
    const earlier = before.get(series);
    const step = growing.test(series) ? Number(value) - Number(earlier ?? 0) : 0;
    return [series, `${earlier === undefined ? '_x10' : `${earlier}+0x10`} ${value}+${step}x90`];
  });
  return Object.fromEntries(entries);
}
