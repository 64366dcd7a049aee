/** Formats numbers of bytes as text, and values as bars of block characters. Pure. */

/** The default width of the longest bar, in columns. */
const DEFAULT_BAR_WIDTH = 16;
/** Block characters that fill no to seven eighths of a column. */
const EIGHTHS = ' ▏▎▍▌▋▊▉';
const UNITS = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'];

/** Formats bytes in decimal units, as in prices: a MB is 1,000,000 bytes. */
export function byteText(bytes: number): string {
  let value = bytes;
  let unit = 0;
  // 999.95 kB would be written as 1000.0 kB, and 99.995 kB as 100.00 kB.
  for (; value >= (unit === 0 ? 1000 : 999.95) && unit < UNITS.length - 1; unit += 1) value /= 1000;
  return `${unit === 0 ? value : value.toFixed(value < 99.995 ? 2 : 1)} ${UNITS[unit]}`;
}

/** The bar of a value; the bar of `max` is `width` columns long. */
export function bar(value: number, max: number, width = DEFAULT_BAR_WIDTH): string {
  const eighths = max === 0 ? 0 : Math.round((value / max) * width * 8);
  const lastEighths = eighths % 8;
  return '█'.repeat(Math.floor(eighths / 8)) + (lastEighths === 0 ? '' : EIGHTHS[lastEighths]);
}
