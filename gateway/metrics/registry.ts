/**
 * The rows of metrics/table.ts as prom-client knows them.
 *
 * What happens with every ping is counted in plain numbers, which the library sees at a scrape only: there an increment
 * hashes its labels, and costs as much as the rest of the bookkeeping of a ping.
 */
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { METRICS, type MetricName, type MetricRow } from './table.js';

/** One value, with its labels in the order of the row. */
export type Reading = readonly [value: number, ...labels: readonly string[]];

/** Combinations of labels that one metric may have; past it, new ones are left out. Ours are fewer. */
const MOST_SERIES = 500;

/** Counts by labels, in plain numbers. */
export class Tally {
  readonly #counts = new Map<string, { readonly labels: readonly string[]; count: number }>();

  add(...labels: readonly string[]): void {
    const key = labels.join(' ');
    const entry = this.#counts.get(key);
    if (entry !== undefined) entry.count += 1;
    else if (this.#counts.size < MOST_SERIES) this.#counts.set(key, { labels, count: 1 });
  }

  *readings(): Iterable<Reading> {
    for (const { labels, count } of this.#counts.values()) yield [count, ...labels];
  }
}

export class MetricRegistry {
  readonly #registry = new Registry();
  readonly #tallies = new Map<MetricName, Tally>();
  readonly #histograms = new Map<MetricName, Histogram>();
  readonly #readers = new Map<MetricName, () => Iterable<Reading>>();

  constructor() {
    for (const row of METRICS) this.#add(row);
  }

  /** Where a counter is counted. */
  tally(name: MetricName): Tally {
    return found(name, this.#tallies.get(name));
  }

  histogram(name: MetricName): Histogram {
    return found(name, this.#histograms.get(name));
  }

  /** A gauge, or a counter that something else counts, is read by this at each scrape. */
  read(name: MetricName, reader: () => Iterable<Reading>): void {
    this.#readers.set(name, reader);
  }

  /** Everything, in Prometheus' text format. */
  async text(): Promise<{ readonly contentType: string; readonly body: string }> {
    return { contentType: this.#registry.contentType, body: await this.#registry.metrics() };
  }

  #add({ name, type, labels, help, buckets }: MetricRow & { readonly name: MetricName }): void {
    const options = { name, help, labelNames: [...labels], registers: [this.#registry] };
    const labelled = (values: readonly string[]): Record<string, string> => {
      return Object.fromEntries(labels.map((label, index) => [label, values[index] ?? '']));
    };
    if (type === 'histogram') {
      this.#histograms.set(name, new Histogram({ ...options, buckets: [...(buckets ?? [])] }));
    } else if (type === 'gauge') {
      const gauge: Gauge = new Gauge({
        ...options,
        collect: () => {
          gauge.reset();
          for (const [value, ...values] of this.#readers.get(name)?.() ?? []) gauge.set(labelled(values), value);
        },
      });
    } else {
      const tally = new Tally();
      this.#tallies.set(name, tally);
      this.#readers.set(name, () => tally.readings());
      const counter: Counter = new Counter({
        ...options,
        collect: () => {
          counter.reset();
          for (const [value, ...values] of this.#readers.get(name)?.() ?? []) counter.inc(labelled(values), value);
        },
      });
    }
  }
}

function found<T>(name: MetricName, value: T | undefined): T {
  if (value === undefined) throw new Error(`no such metric of that kind: ${name}`);
  return value;
}
