/** The reference of error codes has every code that the product can make, once, and nothing else. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { ERROR_GROUPS } from '../../cli/manual/reference/error-codes.js';
import { INPUT_CODES } from '../../cli/manual/reference/input-codes.js';
import { ourFiles, root } from '../helpers/house/our-files.js';
import { thrownCodes } from '../helpers/house/thrown-codes.js';

const sources = ourFiles().filter(
  (path) => /^(proto|gateway|firmware-sim|cli)\/.*(?<!\.d)\.ts$/.test(path) && !path.startsWith('cli/manual/'),
);
/** Codes that the code puts together from parts: those of inputRefusal, and that of errors without one of their own. */
const MADE_OF_PARTS = ['input-body', 'input-query', 'request'];
const documented = [...ERROR_GROUPS, INPUT_CODES].flatMap(({ codes }) => codes.map(([code]) => code));

t.test('codes are found wherever an error is made', async (t) => {
  const text = `
    throw new LockgateError(isLate ? 'too-late' : 'too-early', 'a sentence');
    return problem('bad-thing', why);
    throw new Refusal({ status: 400, code: 'wrong-thing', detail });
    return { code: 'odd-line', message, line };
    class Full extends LockgateError { constructor() { super('all-full', 'it is full'); } }
    export const REFUSED_CODE = 'no-entry';
    throw oauthRefusal('invalid_scope', 'no');
    throw new Error('this sentence is no code');
  `;
  t.same(thrownCodes('sample.ts', text), [
    'too-late',
    'too-early',
    'bad-thing',
    'wrong-thing',
    'odd-line',
    'all-full',
    'no-entry',
    'invalid-scope',
  ]);
});

t.test('every code is in the reference, and the reference has no other', async (t) => {
  const texts = sources.map((path) => readFileSync(join(root, path), 'utf8'));
  const thrown = new Set([
    ...MADE_OF_PARTS,
    ...sources.flatMap((path, index) => thrownCodes(path, texts[index] as string)),
  ]);
  t.ok(thrown.size > 200, `${thrown.size} codes`);
  t.same(
    [...thrown].filter((code) => !documented.includes(code)).sort(),
    [],
    'missing in cli/manual/reference/error-codes.ts or input-codes.ts',
  );
  t.same(documented.filter((code) => !thrown.has(code)).sort(), [], 'nothing makes these');
  t.equal(new Set(documented).size, documented.length, 'no code twice');
});
