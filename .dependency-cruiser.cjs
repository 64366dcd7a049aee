// The picture of the house as a rule that fails the build:
//
//                proto          imports nothing of ours
//              /       \
//    firmware-sim      gateway  never import each other: the simulator must be able to prove the gateway wrong
//              \       /
//                 cli           imports all three
//                 test          imports all; nothing imports test

const ours = '^(proto|gateway|firmware-sim|cli|test)/';
const threads =
  '(gateway/store/sqlite/(log/(log|wal)|upkeep/upkeep|figures/figures|scan/scan)-thread|cli/commands/sim/job-thread)';
const bench = 'test/((bench|chaos|pictures)/main|bench/peers/store-append)';
const pages = 'gateway/console/page/(operator\\.tsx|merchant\\.tsx|(live|trace)-worker\\.ts|buffer\\.ts)';
const tests = 'test/((late-optimization|run-bundled)\\.cjs|current-tap\\.mjs|.*\\.test\\.ts)';
// Files that nothing needs to import: where a program, a page, a thread or a test begins. Tests are among them, so the
// rule `no-dead-file` does not find a file that only its own test imports.
const entries = `^(cli/main\\.ts|${pages}|(${threads}|${bench})\\.ts|.*\\.mjs|${tests})$`;

const proto = ['proto', 'proto/power', 'proto/wire'];
/** Folders inside one folder, and what lies directly in it. */
const inside = (folder, ...names) => [folder, ...names.map((name) => `${folder}/${name}`)];
const sim = (...names) => inside('firmware-sim', ...names);
const gateway = (...names) => inside('gateway', ...names);
const cli = (...names) => inside('cli', ...names);
/**
 * What each folder may import of ours, besides itself. A folder of the first level, such as `gateway`, stands for the
 * files that lie directly in it. An import that is not here fails the check: either the import is wrong, or the plan
 * changes, here and in the folder's README, with a reason.
 */
const plan = {
  proto: [],
  'proto/wire': ['proto', 'proto/gen', 'proto/power'],
  'proto/power': ['proto', 'proto/gen', 'proto/wire'],
  'proto/trace': ['proto', 'proto/gen', 'proto/power', 'proto/wire'],
  'proto/why': [...proto],
  'proto/reference': [...proto, 'proto/trace', 'proto/why'],
  'proto/gen': ['proto', 'proto/trace', 'proto/wire'],

  'firmware-sim': [...proto],
  'firmware-sim/link': [...proto],
  'firmware-sim/world': [...sim('device-event'), ...proto],
  'firmware-sim/lock': [...sim('link', 'world'), ...proto],
  'firmware-sim/faults': [...sim('link', 'lock'), ...proto],
  'firmware-sim/fleet': [...sim('faults', 'link', 'lock', 'trace', 'world'), ...proto, 'proto/trace'],
  'firmware-sim/inference': [...sim('link', 'lock', 'trace', 'world'), ...proto, 'proto/trace'],
  'firmware-sim/scenario': [
    ...sim('device-event', 'faults', 'fleet', 'link', 'lock', 'trace', 'world'),
    ...proto,
    'proto/trace',
  ],
  'firmware-sim/plan': [...sim('fleet', 'link', 'world'), ...proto],
  'firmware-sim/what-if': [...sim('inference', 'link', 'lock', 'plan', 'world'), ...proto],
  'firmware-sim/device-event': [...proto],
  'firmware-sim/story': [...sim('link', 'lock', 'world'), ...proto],
  'firmware-sim/trace': [...sim('fleet', 'link', 'lock', 'world'), ...proto, 'proto/trace'],

  gateway: [...gateway('fairness', 'map', 'mqtt', 'store', 'webhooks'), ...proto],
  'gateway/accounts': [
    ...gateway('audit', 'commands', 'console', 'data-folder', 'fairness', 'ingest', 'live', 'locks', 'mqtt'),
    ...gateway('network', 'ownership', 'store', 'usage', 'webhooks'),
    ...proto,
  ],
  'gateway/audit': [...gateway('log', 'store'), ...proto],
  'gateway/clocks': [...gateway('commands', 'locks', 'mqtt', 'store'), ...proto],
  'gateway/commands': [...gateway('clocks', 'ingest', 'locks', 'mqtt', 'store'), ...proto],
  'gateway/console': [...gateway('accounts', 'http', 'map', 'network', 'store'), ...proto, 'proto/trace'],
  'gateway/data-folder': [...gateway('audit', 'store', 'webhooks'), ...proto],
  'gateway/fairness': [...gateway('store'), ...proto],
  'gateway/health': [...gateway('store'), ...proto],
  'gateway/http': [
    ...gateway(
      'accounts',
      'audit',
      'clocks',
      'commands',
      'console',
      'data-folder',
      'fairness',
      'health',
      'ingest',
      'live',
      'locks',
      'map',
      'metrics',
      'mqtt',
      'network',
      'notices',
      'notify',
      'ownership',
      'store',
      'usage',
      'webhooks',
      'why',
    ),
    ...proto,
    'proto/trace',
    'proto/why',
  ],
  'gateway/ingest': [...gateway('clocks', 'locks', 'store', 'webhooks'), ...proto],
  'gateway/live': [...gateway('fairness', 'locks', 'store'), ...proto],
  'gateway/locks': [...gateway('ingest', 'store'), ...proto],
  'gateway/log': [...gateway(), ...proto],
  'gateway/map': [...proto],
  'gateway/metrics': [...gateway('health', 'network', 'store', 'webhooks'), ...proto],
  'gateway/mqtt': [...gateway('data-folder', 'ingest', 'log', 'network', 'store', 'usage'), ...proto],
  'gateway/network': [...gateway('webhooks'), ...proto],
  'gateway/ownership': [...gateway('commands', 'ingest', 'locks', 'mqtt', 'store', 'webhooks'), ...proto],
  'gateway/notices': [...gateway('locks', 'store', 'webhooks'), ...proto],
  'gateway/notify': [...gateway('accounts', 'data-folder', 'store', 'webhooks'), ...proto],
  // This folder and gateway.ts put the folders together.
  'gateway/start': [
    ...gateway(
      'accounts',
      'clocks',
      'commands',
      'data-folder',
      'fairness',
      'health',
      'http',
      'ingest',
      'live',
      'locks',
      'map',
      'metrics',
      'mqtt',
      'network',
      'notices',
      'notify',
      'ownership',
      'store',
      'usage',
      'webhooks',
    ),
    ...proto,
  ],
  'gateway/store': [...gateway('data-folder', 'fairness', 'usage', 'webhooks'), ...proto],
  'gateway/usage': [...gateway('ingest', 'store'), ...proto],
  'gateway/webhooks': [...gateway('accounts', 'data-folder', 'fairness', 'store'), ...proto, 'proto/trace'],
  'gateway/why': [...gateway('commands', 'ingest', 'locks', 'mqtt', 'store', 'webhooks'), ...proto, 'proto/why'],
  'gateway/gateway.ts': [
    ...gateway(
      'accounts',
      'audit',
      'clocks',
      'commands',
      'data-folder',
      'health',
      'http',
      'ingest',
      'live',
      'locks',
      'metrics',
      'mqtt',
      'network',
      'notices',
      'notify',
      'start',
      'store',
      'usage',
      'webhooks',
    ),
    ...proto,
  ],

  cli: [...cli('commands', 'terminal'), ...gateway('store'), ...proto],
  'cli/commands': [
    ...cli('recordings', 'terminal'),
    ...sim(
      'device-event',
      'faults',
      'fleet',
      'inference',
      'link',
      'lock',
      'plan',
      'scenario',
      'story',
      'what-if',
      'trace',
      'world',
    ),
    ...gateway('audit', 'console', 'data-folder', 'http', 'log', 'map', 'network', 'store', 'usage', 'webhooks'),
    'gateway/gateway.ts',
    ...proto,
    'proto/trace',
    'proto/why',
  ],
  'cli/manual': ['cli/terminal', ...gateway('http', 'metrics', 'webhooks'), ...proto, 'proto/reference', 'proto/why'],
  'cli/recordings': [...sim('scenario'), ...proto, 'proto/trace'],
  'cli/terminal': [...cli(), ...gateway('store'), ...proto],
};

/** The files that a name in the plan stands for. */
function filesOf(name) {
  if (name.endsWith('.ts')) return `^${name.replaceAll('.', '\\.')}$`;
  return name.includes('/') ? `^${name}/` : `^${name}/(?!gateway\\.ts)[^/]+$`;
}

/** A rule for each name in the plan. */
function planRules() {
  return Object.entries(plan).map(([name, allowed]) => {
    const why = `${name} may import ${allowed.length > 0 ? allowed.join(', ') : 'nothing of ours'}`;
    const pathNot = [name, ...allowed].map(filesOf);
    return forbid(`plan-of-${name}`, why, { path: filesOf(name), pathNot: '\\.mjs$' }, { path: ours, pathNot });
  });
}

function forbid(name, comment, from, to) {
  return { name, comment, severity: 'error', from, to };
}

module.exports = {
  forbidden: [
    ...planRules(),
    forbid(
      'no-folder-beside-the-plan',
      'a new folder of the product has a row in the plan above',
      {
        path: '^(proto|gateway|firmware-sim|cli)/.*\\.ts$',
        pathNot: [...Object.keys(plan).map(filesOf), '^proto/gen/'],
      },
      { path: '.' },
    ),
    forbid(
      'pages-run-in-browsers',
      'what runs in browsers imports only proto, the timeline and the wording',
      { path: '^gateway/console/page/' },
      { path: ours, pathNot: ['^gateway/console/(page|timeline|wording)/', '^proto/'] },
    ),
    forbid(
      'nothing-imports-pages',
      'the gateway serves the pages as files and imports none of them',
      { path: '^(proto|gateway|firmware-sim|cli)/', pathNot: '^gateway/console/page/' },
      { path: '^gateway/console/page/' },
    ),
    forbid(
      'nothing-imports-test',
      'tests import all, and nothing imports them',
      { pathNot: '^test/' },
      { path: '^test/' },
    ),
    forbid(
      'proto-is-pure',
      'proto has no socket and no disk, so that it runs and is tested anywhere',
      { path: '^proto/', pathNot: '^proto/(reference/)?generate' },
      { dependencyTypes: ['core'], path: '^(node:)?(fs|net|tls|dgram|http|https|http2|child_process|worker_threads)' },
    ),
    forbid(
      'one-broker',
      'gateway/mqtt/broker.ts is the only place that knows aedes, so that its quirks stay there',
      // The simulator is tried against a broker that isn't ours to bend, and the gateway is measured beside one.
      {
        path: ours,
        pathNot: '^(gateway/mqtt/broker\\.ts$|test/firmware-sim/mqtt\\.test\\.ts$|test/bench/peers/bare-aedes\\.ts$)',
      },
      { path: '(^|/)node_modules/aedes' },
    ),
    forbid(
      'one-codec',
      'the protobuf code is used through proto/wire/codec.ts, which knows its traps (64-bit numbers, absent fields)',
      { path: ours, pathNot: '^proto/(wire/codec\\.ts$|gen/)' },
      { path: '^(proto/gen/lock|#lock-pb)' },
    ),
    forbid(
      'generated-behind-proto',
      'what is generated is an inner part of proto: import the file of proto/wire that exports it',
      { path: ours, pathNot: '^proto/' },
      { path: '^proto/gen/' },
    ),
    forbid(
      'one-door-to-engines',
      'gateway/store/open-store.ts, store-at-rest.ts and store-move.ts choose the engine; others know the contract',
      { path: '^(cli|gateway)/', pathNot: '^gateway/store/(sqlite/|(open-store|store-at-rest|store-move)\\.ts$)' },
      { path: ['^gateway/store/sqlite/', '(^|/)node_modules/better-sqlite3'] },
    ),
    forbid(
      'postgres-behind-its-door',
      'only the engine in PostgreSQL and the three files that choose an engine import it and its driver',
      { path: '^(cli|gateway)/', pathNot: '^gateway/store/(postgres/|(open-store|store-at-rest|store-move)\\.ts$)' },
      { path: ['^gateway/store/postgres/', '(^|/)node_modules/(@types/)?pg/'] },
    ),
    forbid(
      'one-kysely',
      'only gateway/store/tables/kysely.ts imports values of Kysely; other files import its types',
      { path: ours, pathNot: '^gateway/store/tables/kysely\\.ts$' },
      { path: '(^|/)node_modules/kysely', dependencyTypesNot: ['type-only'] },
    ),
    forbid(
      'no-development-package',
      'a package that only development installs is not there when users run us',
      { path: ours, pathNot: '^test/|\\.mjs$' },
      { dependencyTypes: ['npm-dev'], dependencyTypesNot: ['type-only'] },
    ),
    forbid('no-cycle', 'two files that import each other are one file', {}, { circular: true }),
    forbid('no-unresolved', 'it imports what is not there', {}, { couldNotResolve: true }),
    forbid(
      'no-dead-file',
      'no run and no test comes here',
      { path: entries },
      {
        path: ours,
        pathNot: [entries, '\\.d\\.ts$'],
        reachable: false,
      },
    ),
  ],
  options: {
    doNotFollow: { path: ['node_modules'] },
    exclude: { path: '^(dist|test/clients/node_modules)/' },
    // Imports of types count too: they are knowledge of the other side.
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'node', 'default', 'types'] },
  },
};
