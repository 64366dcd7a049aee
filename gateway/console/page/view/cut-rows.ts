/** The rows of a table that shows only the newest ones, and the sentence that says so. Pure. */

export interface CutRows<Row> {
  readonly shown: readonly Row[];
  /** What is not shown; null if all rows are. */
  readonly note: string | null;
}

/**
 * @param rows newest first
 * @param max the maximum number of rows in the table
 * @param what the rows in a sentence, such as `pings`
 * @param hasMore whether there are older ones that were not loaded
 */
export function cutRows<Row>(rows: readonly Row[], max: number, what: string, hasMore: boolean): CutRows<Row> {
  const shown = rows.slice(0, max);
  if (shown.length === rows.length && !hasMore) return { shown, note: null };
  const all = `${hasMore ? 'more than ' : ''}${rows.length.toLocaleString('en-US')}`;
  return { shown, note: `The newest ${shown.length.toLocaleString('en-US')} of ${all} ${what}.` };
}
