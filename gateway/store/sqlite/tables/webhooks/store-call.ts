/** Runs the hand-written SQL of webhooks, on the main thread, and reports its errors as failures of the store. */
import { StoreFailure } from '../../../contract/errors.js';
import type { GuardedWriter } from '../../exclusive-write.js';

/**
 * Runs `work`.
 *
 * @param action completes a failure's message "the store could not …", such as `read deliveries`
 * @throws StoreFailure for whatever `work` throws, also for a closed connection
 */
export function storeCall<T>(action: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw new StoreFailure(action, error);
  }
}

/** As {@link storeCall}, in a transaction while no other write to the store runs. */
export function storeWrite<T>({ mutex, writer }: GuardedWriter, action: string, work: () => T): Promise<T> {
  return mutex.runExclusive(() => storeCall(action, () => writer.transaction(work).immediate()));
}
