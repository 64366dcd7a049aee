// Calls of the commands about traces and simulated locks, whose output the contract test compares with snapshots:
// `shows` has the arguments of the call for people, `json` those with --json, `wrong` a mistake and its error,
// `negative` a call with a negative answer. The site's folder has the traces fine.jsonl, without findings, and
// broken.jsonl, with findings.
import { type CommandCase, interruptAfter, LOCK, NOT_A_MAC, PRICE } from './case.js';

export const SIMULATOR: readonly CommandCase[] = [
  {
    command: 'sim run',
    shows: '--virtual --locks 3 --days 1 --seed 7 --jobs 2 --out week.jsonl',
    wrong: ['--virtual --mix warp=100', /warp/],
    negative: '--virtual --scenario hopeless.yaml',
    withoutGateway: '--locks 1',
  },
  {
    command: 'sim plan',
    shows: `--locks 30 --days 1 --mix mid=100 ${PRICE}`,
    wrong: ['', /--locks <n>' not specified/],
  },
  {
    command: 'sim shell',
    shows: '',
    stdin: 'steal for 1 min\nstate\n',
    wrong: ['--battery full', /Expected a whole number, 0 to 100/],
    withoutGateway: '--gateway http://127.0.0.1:9',
  },
  {
    command: 'sim shadow',
    shows: LOCK,
    wrong: ['A4:C1', NOT_A_MAC],
    during: interruptAfter(/Ctrl-C|"begin"/),
    varies: [[/"seconds": ?\d+/g, '"seconds":N']],
  },
  { command: 'sim scenarios', shows: '', wrong: ['thef', /Did you mean theft\?/] },
  { command: 'sim bugs', shows: '', wrong: ['--jsn', /Did you mean --json\?/] },
  { command: 'sim faults', shows: '', wrong: ['--jsn', /Did you mean --json\?/] },
  {
    command: 'trace check',
    shows: 'fine.jsonl --coverage',
    wrong: ['nowhere.jsonl', /nowhere\.jsonl/],
    negative: 'broken.jsonl',
  },
  {
    command: 'trace show',
    shows: 'fine.jsonl',
    wrong: ['fine.jsonl --reason REASON_THEF', /is not a reason: .*Did you mean REASON_THEFT\?/],
  },
  { command: 'trace why', shows: 'broken.jsonl:6', wrong: ['fine.jsonl:1', /fine\.jsonl:1 is the header/] },
  {
    command: 'trace certify',
    shows: 'fine.jsonl --firmware 2.4.1',
    wrong: ['fine.jsonl --verify fine.jsonl', /fine\.jsonl is not a certificate/],
    negative: 'broken.jsonl',
  },
  { command: 'trace anonymise', shows: 'fine.jsonl --seed 1', json: null, wrong: ['nowhere.jsonl', /nowhere\.jsonl/] },
  { command: 'trace export', shows: '', json: null, wrong: ['--since noon', /noon/] },
  {
    command: 'trace record',
    shows: '--out now.jsonl',
    json: null,
    wrong: ['--mac A4:C1', NOT_A_MAC],
    during: interruptAfter(/Ctrl-C/),
  },
  {
    command: 'trace replay',
    shows: 'fine.jsonl --provision --merchant "Amber Bikes" --speed max',
    wrong: ['fine.jsonl', /give --secrets FILE\.csv or --provision/],
  },
  {
    command: 'trace import',
    shows: '--from mosquitto-log sub.txt --mac A4:C1:38:F0:E1:D2 --out imported.jsonl',
    wrong: ['--from pcap sub.txt', /sub\.txt: offset 0: the file starts with/],
  },
  {
    command: 'trace shrink',
    shows: 'broken.jsonl --rule after-close',
    json: 'broken.jsonl --rule after-close --out small.jsonl',
    wrong: ['broken.jsonl --rule after-clos', /there is no rule after-clos: .*Did you mean after-close\?/],
    negative: 'fine.jsonl --rule after-close',
  },
  {
    command: 'trace diff',
    shows: 'fine.jsonl fine.jsonl --tolerance 1s',
    wrong: ['fine.jsonl broken.jsonl --tolerance soon', /--tolerance is "soon": expected a span such as 5s/],
    negative: 'fine.jsonl broken.jsonl',
  },
  {
    command: 'trace what-if',
    shows: 'fine.jsonl --mode HIGH --window 06:00-22:00',
    wrong: ['fine.jsonl --window 6-22', /--window is "6-22".*expected a window such as 06:00-22:00/],
  },
  {
    command: 'ping decode',
    // A close-connection ping of boot 41, sequence 14.
    shows: '0829100e18b8b4acbc9f344a0408011051',
    wrong: ['08', /the bytes are no protobuf Uplink|the uplink/],
  },
  {
    command: 'ping encode',
    shows:
      `'{"ping_type":"close_connection","lock_state":"locked","battery_percent":81,` +
      `"boot":41,"sequence":14,"date":"2026-11-20T06:00:51.000Z"}'`,
    wrong: ["'{}'", /ping_type|expected/],
  },
  {
    command: 'model show',
    shows: '--rules',
    json: '',
    wrong: ['--format pdf', /--format is "pdf": expected text, json/],
  },
];
