/**
 * Reads labels from the command line: `city=Berlin,area=north`. Imported inside actions, so that commands without
 * labels do not load code of the gateway.
 */
import { type Labels, parseLabels } from '../../../gateway/store/contract/devices/device-labels.js';
import { LockgateError } from '../../../proto/errors.js';

/** The labels of the flag `--labels`. @throws LockgateError `input-label` with what was expected */
export function readLabels(text: string): Labels {
  const labels = parseLabels(text);
  if (typeof labels === 'string') throw new LockgateError('input-label', `--labels: ${labels}`);
  return labels;
}
