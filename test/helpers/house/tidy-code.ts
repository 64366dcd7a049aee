// Checks of coding rules that need the syntax of the code: its exports, the length of its functions, its calls. They
// use the TypeScript compiler, so that a word in a comment or a string is not mistaken for a call.
import ts from 'typescript';
import type { SourceFile } from './tidy-text.js';

/** A function that is longer than the limit, with its length. */
export type LongFunction = { path: string; name: string; lines: number };

/** Files that may use real time or random numbers, which of these they may use, and why. */
type Exception = { path: RegExp; allowed: RegExp; why: string };

const MAX_FUNCTION_LINES = 70;

/** `^(?!Math)` matches every name except `Math.random`. */
const exceptions: readonly Exception[] = [
  { path: /^proto\/clock\.ts$/, allowed: /^(?!Math)/, why: 'it is the clock' },
  { path: /^firmware-sim\/prng\.ts$/, allowed: /^Math\.random$/, why: 'it is the source of random numbers' },
  { path: /^docs\//, allowed: /./, why: 'a merchant’s program has no clock of ours' },
  { path: /\.mjs$/, allowed: /./, why: 'tooling runs before there is a build to import the clock from' },
  { path: /^test\/bench\//, allowed: /^(performance|process\.hrtime)/, why: 'a bench measures real time' },
  { path: /^test\/helpers\//, allowed: /^(?!Math)/, why: 'helpers set deadlines for real processes and sockets' },
];

const timeReplacement = 'take a Clock from proto/clock.ts';
const randomReplacement = 'take a Prng from firmware-sim/prng.ts, or node:crypto in the gateway';
/** The names by which code could use real time or random numbers. They are forbidden, except where listed above. */
const timers = ['setTimeout', 'setInterval', 'setImmediate'];
const members = ['Date.now', 'performance.now', 'process.hrtime', 'Math.random', 'AbortSignal.timeout'];
const timerModules = ['timers', 'node:timers', 'timers/promises', 'node:timers/promises', 'node:perf_hooks'];

/** The parsed files: several checks parse the same file. */
const parsed = new WeakMap<SourceFile, ts.SourceFile>();

/** Parses a file's syntax, without types. */
function parse(file: SourceFile): ts.SourceFile {
  const cached = parsed.get(file);
  if (cached !== undefined) return cached;
  const syntax = ts.createSourceFile(file.path, file.text, ts.ScriptTarget.Latest, true);
  parsed.set(file, syntax);
  return syntax;
}

function everyNode(node: ts.Node, visit: (node: ts.Node) => void): void {
  visit(node);
  node.forEachChild((child) => everyNode(child, visit));
}

function lineOf(node: ts.Node): number {
  return node.getSourceFile().getLineAndCharacterOfPosition(node.getStart()).line + 1;
}

/** Finds default exports, which may have another name in every importing file. */
export function findDefaultExports(file: SourceFile): string[] {
  const findings: string[] = [];
  everyNode(parse(file), (node) => {
    const isDefault =
      (ts.isExportAssignment(node) && !node.isExportEquals) ||
      node.kind === ts.SyntaxKind.DefaultKeyword ||
      (ts.isExportSpecifier(node) && node.name.text === 'default');
    // DefaultKeyword is the keyword of `export default function`; the one of a switch is no node.
    if (isDefault) findings.push(`${file.path}:${lineOf(node)}: export it by its name, not as default.`);
  });
  return findings;
}

/** The functions that are longer than the limit. */
export function longFunctions(file: SourceFile): LongFunction[] {
  const found: LongFunction[] = [];
  everyNode(parse(file), (node) => {
    if (!ts.isFunctionLike(node) || !('body' in node) || !node.body) return;
    const last = node.getSourceFile().getLineAndCharacterOfPosition(node.getEnd()).line + 1;
    const lines = last - lineOf(node) + 1;
    if (lines > MAX_FUNCTION_LINES) found.push({ path: file.path, name: functionName(node), lines });
  });
  return found;
}

function functionName(node: ts.SignatureDeclaration): string {
  if (node.name) return node.name.getText();
  if (ts.isConstructorDeclaration(node)) return 'constructor';
  const { parent } = node;
  if (ts.isVariableDeclaration(parent) || ts.isPropertyAssignment(parent)) return parent.name.getText();
  if (ts.isCallExpression(parent)) {
    const title = parent.arguments.find(ts.isStringLiteralLike);
    return title?.text ?? `a function given to ${parent.expression.getText()}`;
  }
  return 'a function without a name';
}

/** Finds long functions that are not listed with their exact length, and list entries that are no longer correct. */
export function findLongFunctions(long: readonly LongFunction[], allowed: readonly LongFunction[]): string[] {
  const same = (a: LongFunction, b: LongFunction) => a.path === b.path && a.name === b.name;
  const grown = long
    .filter((longFunction) => longFunction.lines > (allowed.find((entry) => same(entry, longFunction))?.lines ?? 0))
    .map(({ path, name, lines }) => `${path}: ${name} has ${lines} lines; at most ${MAX_FUNCTION_LINES}, so cut it.`);
  const stale = allowed
    .filter((entry) => long.find((longFunction) => same(entry, longFunction))?.lines !== entry.lines)
    .map(({ path, name, lines }) => `${path}: ${name} no longer has ${lines} lines; correct the list.`);
  return [...grown, ...new Set(stale)];
}

/** Finds uses of real time and random numbers. Other code takes a Clock and a Prng, so that a run can be repeated. */
export function findTimeAndRandom(file: SourceFile): string[] {
  const findings: string[] = [];
  everyNode(parse(file), (node) => {
    const used = timeOrRandomSource(node);
    if (used === null) return;
    if (exceptions.some(({ path, allowed }) => path.test(file.path) && allowed.test(used))) return;
    const replacement = used === 'Math.random' ? randomReplacement : timeReplacement;
    findings.push(`${file.path}:${lineOf(node)}: ${replacement} instead of ${used}.`);
  });
  return findings;
}

/** The name of the source of time or random numbers that this node uses; null if it uses none. */
function timeOrRandomSource(node: ts.Node): string | null {
  if (ts.isPropertyAccessExpression(node)) {
    const name = node.getText().replace(/^globalThis\./, '');
    return [...members, ...timers].includes(name) ? name : null;
  }
  const isDate = (callee: ts.Expression) => ts.isIdentifier(callee) && callee.text === 'Date';
  if (ts.isNewExpression(node) && isDate(node.expression) && !node.arguments?.length) return 'new Date()';
  if (ts.isCallExpression(node) && isDate(node.expression)) return 'Date()';
  if (ts.isImportDeclaration(node) && ts.isStringLiteral(node.moduleSpecifier)) {
    const { text } = node.moduleSpecifier;
    return timerModules.includes(text) ? text : null;
  }
  return ts.isIdentifier(node) && timers.includes(node.text) && isFreeName(node) ? node.text : null;
}

/** Whether the identifier is the global, and not a member, type or key with the same name (a clock's setTimeout). */
function isFreeName({ parent }: ts.Identifier): boolean {
  if (ts.isPropertyAccessExpression(parent) || ts.isTypeQueryNode(parent) || ts.isTypeReferenceNode(parent))
    return false;
  if (ts.isCallExpression(parent) || ts.isShorthandPropertyAssignment(parent)) return true;
  return !(
    ts.isImportSpecifier(parent) ||
    ts.isTypeElement(parent) ||
    ts.isClassElement(parent) ||
    ts.isMethodDeclaration(parent)
  );
}

/** Finds skipped tests without a reason, and tests that are the only ones to run. */
export function findSkippedTests(file: SourceFile): string[] {
  const findings: string[] = [];
  if (!file.path.startsWith('test/')) return findings;
  everyNode(parse(file), (node) => {
    const called =
      ts.isCallExpression(node) && ts.isPropertyAccessExpression(node.expression) && node.expression.name.text;
    if (called === 'skip' || called === 'only') {
      findings.push(`${file.path}:${lineOf(node)}: no .${called}(); a condition goes into { skip: reason }.`);
    }
    const isTrue = ts.isPropertyAssignment(node) && node.initializer.kind === ts.SyntaxKind.TrueKeyword;
    if (isTrue && /^(skip|only|todo)$/.test(node.name.getText())) {
      findings.push(`${file.path}:${lineOf(node)}: ${node.name.getText()} needs a reason or must go.`);
    }
  });
  return findings;
}

/** Files that may examine the text of a message, because the error has no other member with what they need. */
const sentenceReaders: readonly { path: string; why: string }[] = [
  { path: 'gateway/store/sqlite/migrate.ts', why: 'Kysely’s error about unknown migrations has no code' },
  { path: 'gateway/mqtt/broker.ts', why: 'aedes’ error about a closed connection has no code' },
  {
    path: 'cli/terminal/flag-names.ts',
    why: 'it replaces names of JSON members by flags for people; no decision depends on the text',
  },
  { path: 'cli/terminal/wrong-word.ts', why: 'commander’s error has the wrong word only in its message' },
  { path: 'firmware-sim/scenario/yaml.ts', why: 'yaml appends the place to its sentence' },
  { path: 'firmware-sim/world/routes/gpx.ts', why: 'saxes prepends the place to its sentence' },
];

/** The members that have the text of a message, and the methods that would examine it. */
const sentenceNames = ['message', 'why', 'sentence'];
const textMethods = [
  'match',
  'matchAll',
  'includes',
  'startsWith',
  'endsWith',
  'indexOf',
  'search',
  'replace',
  'split',
];

/** Finds code that depends on the text of a message. Messages may be reworded; code must read an error's code. */
export function findSentenceMatching(file: SourceFile): string[] {
  const isProduct = /^(gateway|cli|firmware-sim|proto)\//.test(file.path);
  if (!isProduct || sentenceReaders.some(({ path }) => path === file.path)) return [];
  const findings: string[] = [];
  everyNode(parse(file), (node) => {
    if (readsSentence(node))
      findings.push(`${file.path}:${lineOf(node)}: use the error’s code, not the text of its message.`);
  });
  return findings;
}

/** Whether the node switches on, compares, tests or cuts the text of a message. */
function readsSentence(node: ts.Node): boolean {
  if (ts.isSwitchStatement(node)) return isSentence(node.expression);
  if (ts.isBinaryExpression(node)) {
    const { EqualsEqualsEqualsToken: equal, ExclamationEqualsEqualsToken: unequal } = ts.SyntaxKind;
    const isText = ts.isStringLiteral(node.right) ? node.right.text !== '' : ts.isIdentifier(node.right);
    const isComparison = node.operatorToken.kind === equal || node.operatorToken.kind === unequal;
    return isComparison && isSentence(node.left) && isText && node.right.getText() !== 'undefined';
  }
  if (!ts.isCallExpression(node) || !ts.isPropertyAccessExpression(node.expression)) return false;
  const { expression: receiver, name } = node.expression;
  if (name.text === 'test' || name.text === 'exec') return node.arguments.some(isSentence);
  return textMethods.includes(name.text) && isSentence(receiver);
}

function isSentence(node: ts.Expression): boolean {
  if (ts.isPropertyAccessExpression(node)) return sentenceNames.includes(node.name.text);
  return ts.isIdentifier(node) && sentenceNames.includes(node.text);
}
