/** The column `labels` of `device`: JSON in the order of the keys; null for a lock without labels. Pure. */
import { type Labels, NO_LABELS, orderedLabels } from '../../contract/devices/device-labels.js';

/** Converts labels to the column's value. */
export function labelsColumn(labels: Labels | undefined): string | null {
  const isEmpty = labels === undefined || Object.keys(labels).length === 0;
  return isEmpty ? null : JSON.stringify(orderedLabels(labels));
}

/** Converts the column's value to labels. */
export function readLabels(column: string | null): Labels {
  return column === null ? NO_LABELS : (JSON.parse(column) as Labels);
}
