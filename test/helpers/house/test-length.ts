/**
 * Chooses sizes for tests that have a quick and a long form in one file. The files in test/long/sizes run the long
 * form.
 */

/** `quick` for `npm test`; `long` if the environment variable LOCKGATE_LONG is 1. */
export function byLength<Size>(quick: Size, long: Size): Size {
  return process.env.LOCKGATE_LONG === '1' ? long : quick;
}
