/**
 * Registers the metrics of table.ts with prom-client.
 *
 * Counters are plain numbers here, and the library reads them at a scrape: the library's own increment hashes the
 * labels, which costs as much as all other bookkeeping of a ping.
 */
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { METRICS, type MetricName, type MetricRow } from './table.js';

/** A value with its labels, in the order of the row's `labels`. */
export type Reading = readonly [value: number, ...labels: readonly string[]];

/**
 * Maximum number of label combinations of a metric; further ones are not counted. The metrics of table.ts have fewer.
 */
const MAX_SERIES = 500;

/** Counts by labels, in plain numbers. */
export class Tally {
  readonly #counts = new Map<string, { readonly labels: readonly string[]; count: number }>();

  /** Adds 1 to the count of these labels. */
  add(...labels: readonly string[]): void {
    const key = labels.join(' ');
    const entry = this.#counts.get(key);
    if (entry !== undefined) entry.count += 1;
    else if (this.#counts.size < MAX_SERIES) this.#counts.set(key, { labels, count: 1 });
  }

  *readings(): Iterable<Reading> {
    for (const { labels, count } of this.#counts.values()) yield [count, ...labels];
  }
}

/** All metrics of table.ts, with what counts or reads each. */
export class MetricRegistry {
  readonly #registry = new Registry();
  readonly #tallies = new Map<MetricName, Tally>();
  readonly #histograms = new Map<MetricName, Histogram>();
  readonly #readers = new Map<MetricName, () => Iterable<Reading>>();

  constructor() {
    for (const row of METRICS) this.#add(row);
  }

  /** The tally of a counter. */
  tally(name: MetricName): Tally {
    return existing(name, this.#tallies.get(name));
  }

  histogram(name: MetricName): Histogram {
    return existing(name, this.#histograms.get(name));
  }

  /** Sets what reads a gauge, or a counter that is counted elsewhere, at each scrape. */
  read(name: MetricName, reader: () => Iterable<Reading>): void {
    this.#readers.set(name, reader);
  }

  /** All metrics, in Prometheus' text format. */
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
          // Without labels, a reset gauge is 0; one without a value must be absent.
          if (labels.length === 0) gauge.remove();
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

function existing<T>(name: MetricName, value: T | undefined): T {
  if (value === undefined) throw new Error(`no such metric of that kind: ${name}`);
  return value;
}
