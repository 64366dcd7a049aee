// Which command runs a test file: its name and its folder say so.
//
//   quick   x.test.ts        `npm test`, for every change
//   slow    x.slow.test.ts   `npm run test:slow`, before a change is merged: browsers, databases and other programs,
//                            each command that the documentation shows, and proofs that other tests can fail
//   long    test/long/       `npm run test:long`: the same at full length, for hours
//   check   test/check/      `npm run check`: what needs the TypeScript compiler or reads every file
//
// The build server runs quick, slow and check.

export type TestKind = 'quick' | 'slow' | 'long' | 'check';

/** The folder of long tests, as compiled. */
export const LONG_FOLDER = 'dist/test/long/';
const CHECK_FOLDER = 'dist/test/check/';
const SLOW_NAME = '.slow.test.js';

/** The kind of a compiled test file (a path from the root). */
export function kindOfTest(file: string): TestKind {
  if (file.startsWith(LONG_FOLDER)) return 'long';
  if (file.startsWith(CHECK_FOLDER)) return 'check';
  return file.endsWith(SLOW_NAME) ? 'slow' : 'quick';
}
