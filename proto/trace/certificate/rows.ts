/** All rows of a certificate, in its order, and how a name on the command line selects them. Pure. */
import type { PowerModel } from '../../power/model.js';
import { functionRows, stateRowId } from './function-rows.js';
import { OBLIGATION_ROWS } from './obligation-rows.js';
import type { CertificateRow } from './row.js';

/** The rows for a model. */
export function certificateRows(model: PowerModel): CertificateRow[] {
  return [...functionRows(model), ...OBLIGATION_ROWS];
}

/**
 * The rows that a name selects: the row with that id; or, for an id without its state such as `theft-cellular`, the row
 * of each state. Empty if there is none.
 */
export function rowsNamed<Row extends CertificateRow>(rows: readonly Row[], name: string): Row[] {
  const exact = rows.filter(({ row }) => row === name);
  if (exact.length > 0) return exact;
  return rows.filter(({ row, state }) => state !== null && row === stateRowId(name, state));
}
