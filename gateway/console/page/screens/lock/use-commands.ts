/** A hook with the commands of one lock, for its list of commands and for its timeline. */
import { useCallback, useMemo, useState } from 'preact/hooks';
import { type Milliseconds, Seconds } from '../../../../../proto/clock.js';
import { useApi } from '../../api/console-api.js';
import type { Command } from '../../api/shapes.js';
import { asFailure, type Loaded, useAnswer } from '../../view/use-answer.js';
import { NewestItems } from './newest-items.js';

/** How often they are loaded while one of them waits or was sent: its next state is expected any moment. */
const WHILE_OPEN: Milliseconds = Seconds(2);
/** How often otherwise: the stream of locks announces a command, except one that was sent at another gateway. */
const WHILE_NONE_IS_OPEN: Milliseconds = Seconds(10);

/** Whether a command has not come to its end. */
export function isOpen({ state }: Command): boolean {
  return state === 'queued' || state === 'sent';
}

/** @param version a change of it loads them again */
export function useCommands(mac: string, version: string | number): Loaded<readonly Command[]> {
  const api = useApi();
  const list = useMemo(
    () =>
      new NewestItems<Command>({
        load: (limit) => api.commands({ mac_addr: mac, limit }),
        idOf: ({ id }) => id,
        mayChange: isOpen,
      }),
    [api, mac],
  );
  const [wait, setWait] = useState<Milliseconds | undefined>(WHILE_NONE_IS_OPEN);
  const load = useCallback(async () => {
    try {
      await list.loadNew();
    } catch (error) {
      // A viewer may not read commands.
      if (asFailure(error).status === 403) setWait(undefined);
      throw error;
    }
    setWait(list.items.some(isOpen) ? WHILE_OPEN : WHILE_NONE_IS_OPEN);
    return list.items;
  }, [list]);
  return useAnswer(load, wait, wait === undefined ? '' : version);
}
