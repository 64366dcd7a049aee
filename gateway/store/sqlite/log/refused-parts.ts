/** Which conditional parts of a commit were not stored (../../contract/log/commit-result.ts). Pure. */
import { type PackedCommit, type PackedExtra, UPLINK_WORD, wordsOf } from '../../log/packed-commit.js';

/** Whether the item is the event "command sent" of a command whose change to `sent` was refused. */
export function isRefusedSending(
  { commands }: PackedCommit,
  refusedCommands: readonly number[],
  item: PackedExtra['item'],
): boolean {
  if (item.type !== 'lock-event' || item.event.event !== 'command') return false;
  const { id } = item.event;
  return refusedCommands.some((index) => commands[index]?.type === 'sent' && commands[index].id === id);
}

/** The indexes, among all items of the commit, of the uplinks that got no id, since the log had them already. */
export function repeatedUplinkIndexes({ count, uplinks, extras }: PackedCommit): number[] {
  const doubles = new Float64Array(uplinks);
  const indexes: number[] = [];
  let [start, nextExtra] = [0, 0];
  for (let uplink = 0; uplink < count; uplink += 1) {
    // An extra is an item that is no uplink; `after` is the number of uplinks that come before it.
    while ((extras[nextExtra]?.after ?? count) <= uplink) nextExtra += 1;
    if (doubles[start + UPLINK_WORD.id] === 0) indexes.push(uplink + nextExtra);
    start += wordsOf(doubles[start + UPLINK_WORD.length] as number);
  }
  return indexes;
}
