/**
 * Fetches the list of all locks, page by page, for `trace replay`, which compares it with the locks of a trace. `device
 * list` prints each page at once instead of holding them all.
 */
import type { GatewayClient } from '../../client.js';

/** All locks, sorted by MAC. */
export async function listAllDevices<Device>(client: GatewayClient): Promise<Device[]> {
  const devices: Device[] = [];
  let cursor: string | null = null;
  do {
    const after: string = cursor === null ? '' : `&cursor=${cursor}`;
    const page = await client.get<{ devices: Device[]; next_cursor: string | null }>(`/devices?sort=mac${after}`);
    devices.push(...page.devices);
    cursor = page.next_cursor;
  } while (cursor !== null);
  return devices;
}
