/** Twenty open pages of the console beside a load: ten of operators, ten of the bench's merchant. */
import { type Milliseconds, Seconds } from '../../../proto/clock.js';
import { formatMac, parseMac } from '../../../proto/wire/mac.js';
import type { ChildProgram } from '../load/child-program.js';
import { lockMac } from '../load/many-locks.js';
import { type FigureSummary, measureAlternating, percentile, roundCount, summarizeFigures } from '../measure.js';
import type { Resources } from '../resources.js';
import type { ServeSetup } from '../serve-setup.js';
import { addDashboardUser, type ConsoleSession, logInMerchant, logInOperator } from './logins.js';
import type { OpenConsolesFigures, OpenConsolesRequest } from './open-consoles.js';
import { delay } from './page-figures.js';

/** Ten pages of each kind, because a merchant may have only 16 streams. */
const PAGES_OF_EACH = 10;

/** Pairs of rounds, of which one has open consoles: what consoles cost is less than rounds differ. */
const PAIRS = 25;

/** The pause before each round: opening 20 pages sends 20 snapshots, which is not what open pages cost. */
const PAUSE: Milliseconds = Seconds(1);

/** What open consoles add to a figure of a round. */
export interface ConsoleCost {
  readonly without: FigureSummary;
  readonly withConsoles: FigureSummary;
  readonly pairs: number;
  /** The median and the quartiles of the differences of the pairs. */
  readonly median: number;
  readonly lower: number;
  readonly upper: number;
}

/** The pages, which one separate program plays. */
export class TwentyConsoles {
  /** What the pages got the last time that they were open. */
  last: OpenConsolesFigures = { answers: {}, streamed_bytes: 0 };
  readonly #program: ChildProgram;

  private constructor(program: ChildProgram) {
    this.#program = program;
  }

  /** Logs in, but opens no page. */
  static async start(resources: Resources, { client, httpPort }: ServeSetup): Promise<TwentyConsoles> {
    await addDashboardUser(client, httpPort);
    const sessions: ConsoleSession[] = [];
    for (let page = 0; page < PAGES_OF_EACH; page++)
      sessions.push(await logInMerchant(httpPort), await logInOperator(client));
    const mac = parseMac(lockMac(0));
    if (!mac.ok) throw new Error(mac.error.message);
    const request: OpenConsolesRequest = { sessions, mac: formatMac(mac.value) };
    const program = resources.startScript('console/open-consoles.js', request);
    await program.readAnswer();
    return new TwentyConsoles(program);
  }

  /** Runs work while the pages are open and have all locks. */
  async whileOpen<Result>(work: () => Promise<Result>): Promise<Result> {
    await this.#program.ask('open');
    const result = await work();
    this.last = await this.#program.ask<OpenConsolesFigures>('close');
    return result;
  }

  /** Measures pairs of rounds, alternately with open pages and without. `measure` runs a round. */
  async costOf(measure: () => Promise<number>, quick: boolean): Promise<ConsoleCost> {
    const rounds = quick ? roundCount(quick) : PAIRS;
    // The same pause in both, in which deliveries of the round before go on.
    const measureLater = async (): Promise<number> => {
      await delay(PAUSE);
      return measure();
    };
    const measured = await measureAlternating([measureLater, () => this.whileOpen(measureLater)], rounds);
    const [without = [], withConsoles = []] = measured;
    const differences = withConsoles.map((figure, round) => figure - (without[round] ?? 0));
    return {
      without: summarizeFigures(without),
      withConsoles: summarizeFigures(withConsoles),
      pairs: rounds,
      median: summarizeFigures(differences).median,
      lower: percentile(differences, 0.25),
      upper: percentile(differences, 0.75),
    };
  }

  /** What the pages got, as a sentence. */
  get text(): string {
    const { answers, streamed_bytes } = this.last;
    const calls = Object.entries(answers).map(([status, count]) => `${count} × ${status}`);
    const megabytes = (streamed_bytes / 1e6).toFixed(1);
    return `the 20 consoles got ${megabytes} MB of streams and answers ${calls.join(', ') || 'none'} in the last round`;
  }
}
