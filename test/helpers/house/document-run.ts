/**
 * Runs the examples of a document in order, in a real bash, so that quotes, pipes and variables work as in a reader's
 * shell. In the script `lockgate` (and `npx lockgate`) is a function that passes its arguments to this process, where a
 * command takes only a few milliseconds (command-line.ts). The script has each example on the line that it has in the
 * document, so a failure is reported with its line.
 */
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import path from 'node:path';
import type { Command } from 'commander';
import { calledGroups, makeProgram } from '../../../cli/program.js';
import { runCommand } from '../cli/command-line.js';
import { runProgram } from '../cli/program.js';
import { type Teardown, tempFolder } from '../store/temp-folder.js';

/** A line that is not run unchanged. */
export interface LineException {
  readonly line: RegExp;
  /** `parsed`: the flags and values of the command line are checked, but the command is not run. */
  readonly how: 'parsed' | 'left out';
  readonly reason: string;
}

/** A placeholder in the document, and the value that replaces it in the run. */
export type Replacement = readonly [placeholder: RegExp | string, value: string];

/** Where, and with which environment variables, the examples run. */
export interface DocumentEnvironment {
  /** The folder in which the examples run. */
  readonly folder: string;
  readonly environment: Readonly<Record<string, string>>;
}

/** A command of the document that failed. */
export interface FailedLine {
  readonly line: number;
  readonly code: number;
  readonly text: string;
}

/**
 * The start of the script, in bash. `send` passes a command to this process and prints its output. `last_printed lgs`
 * prints the last secret or id with this prefix that any command has printed; before it looks for the id of an event
 * (`evt`), it lists the deliveries. The trap records each failed command of the document with its line, and no failure
 * inside these functions, whose FUNCNAME is longer. A pipeline fails if any part of it fails.
 */
const PRELUDE = `
set -E -o pipefail
failed() {
  local code=$?
  [ "\${#FUNCNAME[@]}" -gt 2 ] || echo "$1 $code $2: $(tail -1 "$RUN/err")" >> "$RUN/failed"
}
trap 'failed "$LINENO" "$BASH_COMMAND"' ERR
send() {
  local id="$RUN/$BASHPID-$RANDOM" code
  if [ -p /dev/stdin ]; then cat > "$id.in"; else : > "$id.in"; fi
  code=$(printf '%s\\0' "$PWD" "$id" "$@" | command curl -s --unix-socket "$RUN/socket" --data-binary @- http://here/)
  cp "$id.err" "$RUN/err"
  cat "$id.out"
  return "$code"
}
lockgate() { send run "$@"; }
parsed() { send parse "$@"; }
npx() { shift; lockgate "$@"; }
curl() { command curl -sS --fail-with-body "$@" 2> "$RUN/err" | tee -a "$RUN/said"; }
last_printed() {
  [ "$1" != evt ] || lockgate webhook deliveries --json > "$RUN/deliveries"
  grep -oh "$1_[A-Za-z0-9_+/=-]*" "$RUN/said" | tail -1
}
`;

/** The lines of the document, with an empty line in place of each line that is not part of an example. */
export function exampleLines(text: string): string[] {
  /** The language of the code block that is open. */
  let fence: string | undefined;
  return text.split('\n').map((line) => {
    const [, language] = /^```(\w*)$/.exec(line) ?? [];
    if (language === undefined) return /^(sh|bash|console)$/.test(fence ?? '') ? line : '';
    fence = fence === undefined ? language : undefined;
    return '';
  });
}

/** The exceptions that match no line, and so are obsolete. */
export function unusedExceptions(lines: readonly string[], exceptions: readonly LineException[]): string[] {
  return exceptions.filter(({ line }) => !lines.some((each) => line.test(each))).map(({ line }) => String(line));
}

/** Runs the lines. Returns the commands that failed. */
export async function runLines(
  test: Teardown,
  lines: readonly string[],
  {
    replacements,
    exceptions,
    environment,
  }: { replacements: readonly Replacement[]; exceptions: readonly LineException[]; environment: DocumentEnvironment },
): Promise<FailedLine[]> {
  const run = tempFolder(test);
  await serveCommands(test, run, environment.environment);
  for (const name of ['said', 'failed', 'err']) writeFileSync(path.join(run, name), '');
  writeFileSync(path.join(run, 'prelude'), PRELUDE);
  const script = path.join(run, 'script');
  writeFileSync(script, `${scriptLines(lines, exceptions, replacements).join('\n')}\n`);
  const bashEnvironment = { RUN: run, BASH_ENV: path.join(run, 'prelude') };
  const bash = await runProgram(
    test,
    'bash',
    ['-c', `cd ${environment.folder} && exec bash ${script} < /dev/null`],
    bashEnvironment,
  );
  const failed = readFileSync(path.join(run, 'failed'), 'utf8').split('\n').filter(Boolean);
  // A line that bash can't parse ends the script with an error.
  for (const each of bash.stderr) {
    const [, line, text = ''] = /script: line (\d+): (.*)$/.exec(each) ?? [];
    if (line !== undefined) failed.push(`${line} 2 ${text}`);
  }
  return failed.map((each) => {
    // Such as `120 2 lockgate device show: error: …`.
    const [, line, code, text = ''] = /^(\d+) (\d+) (.*)$/.exec(each) ?? [];
    return { line: Number(line), code: Number(code), text };
  });
}

/**
 * The lines of the script that is run for a document's lines. A line that is left out becomes empty, so that the
 * numbers stay the same.
 */
function scriptLines(
  lines: readonly string[],
  exceptions: readonly LineException[],
  replacements: readonly Replacement[],
): string[] {
  let isLeftOut = false;
  return lines.map((line) => {
    // If a command is left out, so are the lines on which it continues.
    const how = isLeftOut ? 'left out' : exceptions.find((each) => each.line.test(line))?.how;
    isLeftOut = how === 'left out' && line.endsWith('\\');
    if (how === 'left out') return '';
    const replaced = how === 'parsed' ? line.replace(/\b(npx )?lockgate (?=[a-z])/g, 'parsed ') : line;
    return replacements.reduce(
      (text, [placeholder, value]) =>
        text.replaceAll(placeholder instanceof RegExp ? withGlobalFlag(placeholder) : placeholder, value),
      replaced,
    );
  });
}

function withGlobalFlag(pattern: RegExp): RegExp {
  return new RegExp(pattern.source, [...new Set(`${pattern.flags}g`)].join(''));
}

/** Serves the script's requests: a folder, a path for the output, `run` or `parse`, and the words of the command. */
async function serveCommands(
  test: Teardown,
  run: string,
  environment: Readonly<Record<string, string>>,
): Promise<void> {
  const handleRequest = async (request: IncomingMessage): Promise<number> => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const [folder = '', id = '', how, ...words] = Buffer.concat(chunks).toString('utf8').split('\0').slice(0, -1);
    const { code, stdout, stderr } = how === 'parse' ? await parseWords(words) : await runWords();
    writeFileSync(`${id}.out`, stdout);
    writeFileSync(`${id}.err`, stderr);
    appendFileSync(path.join(run, 'said'), stdout);
    return code;

    async function runWords() {
      const stdin = existsSync(`${id}.in`) ? readFileSync(`${id}.in`) : Buffer.alloc(0);
      return await runCommand(words, { folder, environment, ...(stdin.length > 0 && { stdin }) });
    }
  };
  const server = createServer((request, response) => {
    handleRequest(request).then(
      (code) => response.end(String(code)),
      // The script reports this exit code as a failed command.
      (error: Error) => response.end(`99 ${error.message}`),
    );
  });
  await new Promise<void>((resolve) => server.listen(path.join(run, 'socket'), resolve));
  test.teardown(() => {
    server.closeAllConnections();
    return new Promise<void>((resolve) => server.close(() => resolve()));
  });
}

/** Parses a command line (the words after `lockgate`) with commander, without running the command. */
export async function parseWords(words: readonly string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const program = await makeProgram(calledGroups(words));
  let stderr = '';
  let isCalled = false;
  const noteInsteadOfRun = (command: Command): void => {
    command.configureOutput({ writeErr: (text) => (stderr += text) }).action(() => {
      isCalled = true;
    });
    for (const each of command.commands) noteInsteadOfRun(each);
  };
  noteInsteadOfRun(program);
  try {
    await program.parseAsync([...words], { from: 'user' });
  } catch (error) {
    // commander also throws after printing help.
    const { exitCode, message } = error as { readonly exitCode?: number; readonly message: string };
    return { code: exitCode === 0 ? 0 : 2, stdout: '', stderr: `${stderr}${message}\n` };
  }
  return { code: isCalled ? 0 : 2, stdout: '', stderr };
}
