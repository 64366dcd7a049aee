// The picture of the house as a rule that fails the build:
//
//                proto          imports nothing of ours
//              /       \
//    firmware-sim      gateway  never import each other: the simulator must be able to prove the gateway wrong
//              \       /
//                 cli           imports all three
//                 test          imports all; nothing imports test

const ours = '^(proto|gateway|firmware-sim|cli|test)/';
// Where a run or a thread begins. Tests are among them, so a file that only its own test imports is not noticed here.
const threads = 'gateway/store/sqlite/(log/(log|wal)-thread|upkeep-thread|figures/figures-thread)';
const bench = 'test/bench/(main|beside/store-append)';
const entries = `^(cli/main\\.ts|(${threads}|${bench})\\.ts|.*\\.mjs|test/.*\\.test\\.ts)$`;

/** `folder` may import, of ours, only from `allowed` (and itself). */
function only(folder, allowed, why) {
  const open = [folder, ...allowed].join('|');
  return forbid(`${folder}-imports`, why, { path: `^${folder}/` }, { path: ours, pathNot: `^(${open})/` });
}

function forbid(name, comment, from, to) {
  return { name, comment, severity: 'error', from, to };
}

module.exports = {
  forbidden: [
    only('proto', [], 'proto is what both ends agree on, and knows neither'),
    only('firmware-sim', ['proto'], 'the simulator shares nothing with the gateway but the protocol'),
    only('gateway', ['proto'], 'the gateway shares nothing with the simulator but the protocol'),
    only('cli', ['proto', 'gateway', 'firmware-sim'], 'nothing imports test'),
    forbid(
      'proto-is-pure',
      'proto has no socket and no disk, so that it runs and is tested anywhere',
      { path: '^proto/', pathNot: '^proto/generate' },
      { dependencyTypes: ['core'], path: '^(node:)?(fs|net|tls|dgram|http|https|http2|child_process|worker_threads)' },
    ),
    forbid(
      'one-broker',
      'gateway/mqtt/broker.ts is the only place that knows aedes, so that its quirks stay there',
      // The simulator is tried against a broker that isn't ours to bend, and the gateway is measured beside one.
      {
        path: ours,
        pathNot: '^(gateway/mqtt/broker\\.ts$|test/firmware-sim/mqtt\\.test\\.ts$|test/bench/beside/bare-aedes\\.ts$)',
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
      'gateway/store/open-store.ts and store-at-rest.ts choose the engine; all others know the contract',
      { path: '^(cli|gateway)/', pathNot: '^gateway/store/(sqlite/|(open-store|store-at-rest)\\.ts$)' },
      { path: ['^gateway/store/sqlite/', '(^|/)node_modules/better-sqlite3'] },
    ),
    forbid(
      'one-kysely',
      'gateway/store/sqlite/kysely.ts loads Kysely, the cheap way; from the package itself come only its types',
      { path: ours, pathNot: '^gateway/store/sqlite/kysely\\.ts$' },
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
