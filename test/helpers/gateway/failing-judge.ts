/** A judge (the gateway's code that checks locks' events against the power model) that throws at events of one lock. */
import type { VersionedJudge } from '../../../gateway/ingest/judging.js';
import type { JudgeEvent } from '../../../proto/power/judge/event.js';
import { judgeInPlace } from '../../../proto/power/judge/judge.js';
import { formatMac } from '../../../proto/wire/mac.js';
import { testMac } from './test-gateway.js';

/** The lock at whose events the judge throws. */
export const BAD_MAC = testMac(1);
/** The message of the thrown errors. */
export const ERROR_MESSAGE = 'a mistake of ours';

/** A judge that throws at some events of one lock, and leaves its belief (the lock's state) half written. */
export class FailingJudge implements VersionedJudge {
  version = '1.0.0';
  /** The events of {@link BAD_MAC} at which the judge throws. */
  throwsAt: (event: JudgeEvent) => boolean;
  /** How often the judge was called for {@link BAD_MAC}. */
  callCount = 0;

  constructor(throwsAt: FailingJudge['throwsAt'] = () => true) {
    this.throwsAt = throwsAt;
  }

  judge: typeof judgeInPlace = (model, belief, event, out) => {
    if (belief.mac === formatMac(BAD_MAC)) {
      this.callCount += 1;
      if (this.throwsAt(event)) {
        Object.assign(belief, { uplinks: -1, runs: undefined, powerFrom: undefined });
        throw new Error(ERROR_MESSAGE);
      }
    }
    judgeInPlace(model, belief, event, out);
  };
}
