/** MACs that people type: any common spelling is read, and all that is wrong is told before a gateway is asked. */
import { LockgateError } from '../../proto/errors.js';
import { formatMac, type Mac, parseMac } from '../../proto/wire/mac.js';

/** @throws LockgateError `input-mac`, which quotes what was typed and says what was expected */
export function readMac(text: string): Mac {
  const mac = parseMac(text);
  if (!mac.ok) throw new LockgateError('input-mac', mac.error.message);
  return mac.value;
}

/** As it is printed: `A4:C1:38:F0:E1:D2`. @throws LockgateError as {@link readMac} */
export function readMacText(text: string): string {
  return formatMac(readMac(text));
}
