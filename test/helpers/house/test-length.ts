/**
 * Chooses sizes for tests that have a quick and a long form in one file. `npm test` and `npm run test:slow` run the
 * quick form; the files in test/long/sizes set LOCKGATE_LONG and run the long form.
 */

/** Returns `long` if the environment variable LOCKGATE_LONG is 1; otherwise `quick`. */
export function quickOrLong<Size>(quick: Size, long: Size): Size {
  return process.env.LOCKGATE_LONG === '1' ? long : quick;
}
