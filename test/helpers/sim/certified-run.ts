/**
 * Makes certificates from traces in memory. A certificate says for each requirement of the specification (a row)
 * whether a lock's traces show that the lock meets it. Also plays the built-in scenarios, whose traces tests certify.
 */
import type { BugAssignment } from '../../../firmware-sim/faults/bugs.js';
import { builtInFile, builtInNames } from '../../../firmware-sim/scenario/built-in.js';
import { readScenarioFile } from '../../../firmware-sim/scenario/reader.js';
import { VirtualScenario } from '../../../firmware-sim/scenario/virtual-scenario.js';
import { POWER_MODEL } from '../../../proto/power/model.js';
import { type Certificate, CertificateMaker } from '../../../proto/trace/certificate/certificate.js';
import type { RowVerdict } from '../../../proto/trace/certificate/row.js';
import { TraceReader } from '../../../proto/trace/reader.js';

/** A trace, with the file name that the certificate states. */
export interface NamedTrace {
  readonly file: string;
  readonly lines: Iterable<string>;
}

/** The certificate of the traces. @throws Error where a line can't be read */
export function certificateOf(traces: readonly NamedTrace[], firmware: string | null = null): Certificate {
  const maker = new CertificateMaker(POWER_MODEL, firmware);
  for (const { file, lines } of traces) {
    const reader = new TraceReader();
    let hasStarted = false;
    for (const line of lines) {
      const event = reader.read(line);
      if (!event.ok) throw new Error(`${file}:${event.error.line}: ${event.error.message}`);
      if (event.value !== null) {
        const judged = maker.judge(event.value, reader.line);
        if (!judged.ok) throw new Error(`${file}:${reader.line}: ${judged.error.message}`);
      } else if (!hasStarted && reader.header !== null) {
        maker.start(file, reader.header);
        hasStarted = true;
      }
    }
    // A certificate states the SHA-256 of each file and the version of lockgate. Tests do not depend on either.
    maker.finish('0'.repeat(64));
  }
  return maker.certificate('0.0.0');
}

/** The ids of the requirements with this verdict. */
export function rowsWith({ rows }: Certificate, verdict: RowVerdict): string[] {
  return rows.filter((row) => row.verdict === verdict).map(({ row }) => row);
}

/**
 * The traces of all built-in scenarios, in the order of their names.
 *
 * @param bugs errors of the locks' firmware; by default those of the scenario
 * @param hasWorldEvents whether the traces have `world` events, which say what truly happened
 */
export async function scenarioLines(bugs?: readonly BugAssignment[], hasWorldEvents = false): Promise<string[][]> {
  const traces: string[][] = [];
  for (const name of builtInNames()) {
    const scenario = await readScenarioFile(builtInFile(name));
    const lines: string[] = [];
    const write = (line: string): void => void lines.push(line);
    const options = { scenario, seed: scenario.seed, note: '', hasWorldEvents, write, ...(bugs && { bugs }) };
    new VirtualScenario(options).advance(scenario.endMs);
    traces.push(lines);
  }
  return traces;
}
