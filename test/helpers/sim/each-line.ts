/** Splits the bytes that a virtual run writes into lines, for tests that look at each. */

/** Calls `take` with each line, without its line break. The bytes must be whole lines. */
export function eachLine(take: (line: string) => void): (lines: Uint8Array) => void {
  return (lines) => {
    for (const line of Buffer.from(lines).toString().split('\n').slice(0, -1)) take(line);
  };
}
