/**
 * Reacts to the clocks: when the machine's clock becomes doubtful or is confirmed, and when the run's clock (wall-clock
 * time, except in a sped-up simulation) steps.
 */
import type { Commands } from '../commands/commands.js';
import type { GatewayEvents } from '../events.js';
import { type ListeningParts, recordClockStep } from '../locks/listening.js';
import type { Sessions } from '../mqtt/sessions.js';
import { clockText, trustedText } from './clock-words.js';
import type { ClockListener } from './recorded-clocks.js';

export interface ClockListenerParts extends Omit<ListeningParts, 'lastRanMs'> {
  readonly events: GatewayEvents;
  readonly sessions: Pick<Sessions, 'all'>;
  readonly commands: Pick<Commands, 'clockTurned' | 'clockStepped'>;
}

/** The listener that announces the state of the clocks, and adapts commands and the judge to steps. */
export function clockListener(parts: ClockListenerParts): ClockListener {
  const { events, clock, commands, sessions } = parts;
  return {
    stateChanged: (reading, by) => {
      const { state, machineMs, confirmedMs } = reading;
      const why = state === 'agrees' ? `${clockText(reading)}: ${trustedText(by)}` : clockText(reading);
      events.emit('clock', { atMs: clock.now(), state, machineMs, confirmedMs, why });
      commands.clockTurned();
    },
    stepping: (step, makeStep) => {
      // A session that is only authenticated has not been reported to the judge yet.
      const connected = [...sessions.all()]
        .filter(({ phase }) => phase !== 'authenticated')
        .map(({ sender }) => sender);
      // Makes the step, between a stop and a start of listening, so that the judge does not take it for silence.
      recordClockStep(parts, connected, makeStep);
      commands.clockStepped(step);
    },
  };
}
