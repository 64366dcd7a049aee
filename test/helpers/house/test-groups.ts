// Which test files share a process, and what each of them wrote. Starting a process costs 0.2 s of CPU time, and its
// first gateway up to 1 s, until V8 has compiled the code that most tests use. So small files run one after another in
// one process, each as a subtest (test/current-tap.mjs).

/** One cheap test of each kind that starts a gateway, as most tests do. */
const FIRST_FILES = [
  'dist/test/gateway/webhooks/waits.test.js',
  'dist/test/gateway/http/own-data/document.slow.test.js',
];
/** Files that cost more (CPU seconds) run alone: they would gain little. */
const MAX_FILE_COST = 15;
/** The most that the files of a group may cost together, so that no group runs alone at the end. */
const MAX_GROUP_COST = 60;
/** Tests of whole processes run alone: other tests would change their memory and open files. */
const OWN_PROCESS = 'dist/test/system/';

/** The result of one file. `ending` says how it ended, null if well; times are in seconds. */
export type FileResult = { file: string; tap: string; ending: string | null; cpu: number; wall: number };

/** How files are grouped. */
export type GroupOptions = {
  /** The files in the bundle; others cannot share a process. */
  bundled: ReadonlySet<string>;
  /** CPU seconds of a file. */
  costOf: (file: string) => number;
  /** Gives each file a process of its own. */
  alone: boolean;
};

/** The file of a bundle that runs first, alone, and stores the compiled code for the others; undefined: none does. */
export function firstBundled(bundled: ReadonlySet<string>): string | undefined {
  return FIRST_FILES.find((file) => bundled.has(file));
}

/**
 * Divides compiled test files into groups, the most expensive group first; a group of one is a file that runs alone.
 * Files of one folder use the same code, so neighbours in the order of paths share a group.
 */
export function groupFiles(files: readonly string[], { bundled, costOf, alone }: GroupOptions): string[][] {
  const mayShare = (file: string): boolean =>
    !alone &&
    bundled.has(file) &&
    !file.startsWith(OWN_PROCESS) &&
    file !== firstBundled(bundled) &&
    costOf(file) <= MAX_FILE_COST;
  const cost = (group: readonly string[]): number => group.reduce((sum, file) => sum + costOf(file), 0);
  const groups = files.filter((file) => !mayShare(file)).map((file) => [file]);
  let group: string[] = [];
  for (const file of files.filter(mayShare).sort()) {
    if (group.length === 0 || cost(group) + costOf(file) > MAX_GROUP_COST) {
      group = [];
      groups.push(group);
    }
    group.push(file);
  }
  return groups.sort((a, b) => cost(b) - cost(a));
}

/** What a file of a group wrote. `closed` is `ok` or `not ok`, which ends its subtest; null if it did not end. */
type Part = { file: string; lines: string[]; closed: string | null; cpu: number; wall: number };

/**
 * Divides the output of a group into that of its files, in order, as if each had run alone.
 *
 * @param tap what the process wrote
 * @param ending how the process ended, null for status 0
 */
export function splitGroup(files: readonly string[], tap: string, ending: string | null): FileResult[] {
  const parts = new Map<string, Part>(files.map((file) => [file, { file, lines: [], closed: null, cpu: 0, wall: 0 }]));
  let part: Part | undefined;
  for (const line of tap.split('\n')) {
    const opened = parts.get(/^# Subtest: (\S+)$/.exec(line)?.[1] ?? '');
    if (opened) part = opened;
    else if (part) addLine(parts, part, line);
  }
  const results = [...parts.values()].map(({ lines, closed, ...rest }) => ({
    ...rest,
    tap: lines.join('\n'),
    ending: endingOf(closed, ending),
  }));
  // If no file failed, but the process did, the last file left something behind that kept the process from ending.
  const last = results.at(-1);
  if (last && results.every((each) => each.ending === null)) last.ending = ending;
  return results;
}

/** Adds a line of the group's output to the file that is open, or takes a time from it. */
function addLine(parts: ReadonlyMap<string, Part>, part: Part, line: string): void {
  // The end of a file's subtest: `not ok 3 - dist/test/a.test.js # time=12.3ms`.
  const [, closed] = /^((?:not )?ok) \d+ - /.exec(line) ?? [];
  // The CPU time of a file: `# cpu 0.31 s dist/test/a.test.js`.
  const [, seconds, file = ''] = /^# cpu ([\d.]+) s (\S+)$/.exec(line) ?? [];
  const counted = parts.get(file);
  if (closed !== undefined) {
    part.closed = closed;
    part.wall = Number(/ # time=([\d.]+)ms/.exec(line)?.[1] ?? 0) / 1000;
  } else if (counted) counted.cpu = Number(seconds);
  // The lines of a subtest are indented by four blanks.
  else if (part.closed === null) part.lines.push(line.replace(/^ {4}/, ''));
  // Details of the subtest itself, for example of its time limit. A comment, since they belong to no line of the file.
  else if (line.startsWith('  ')) part.lines.push(`# ${line.trim()}`);
}

function endingOf(closed: string | null, ending: string | null): string | null {
  if (closed === 'ok') return null;
  if (closed === 'not ok') return 'failed';
  return `did not finish: the process that it shares with other files ${ending ?? 'ended early'}`;
}
